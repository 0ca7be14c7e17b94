"""Networks of the page: the user's own go by the names of their files, and wrong ones are refused."""

from __future__ import annotations

import pytest

import lcv
from lcv.demo import networks
from lcv.demo.networks import add_network, has_w, loaded, network
from lcv.errors import LcvError
from testing.footage import save_weights


@pytest.fixture(autouse=True)
def offered(monkeypatch):
    """What is added in a test is not there in the next."""
    monkeypatch.setattr(networks, "MODELS", dict(networks.MODELS))
    monkeypatch.setattr(networks, "_sources", {})
    loaded.cache_clear()
    yield
    loaded.cache_clear()


def test_a_file_goes_by_its_name_and_by_its_path_where_another_has_that_name(tmp_path):
    (tmp_path / "a").mkdir()
    first, second = save_weights(tmp_path / "w.safetensors"), tmp_path / "a" / "w.safetensors"
    second.write_bytes(first.read_bytes())
    assert add_network(str(first)) == "w.safetensors"
    assert add_network(str(first)) == "w.safetensors", "it is there already"
    assert add_network(str(second)) == str(second)
    assert add_network("raft-small") == "raft-small"
    assert list(networks.MODELS)[3:] == ["w.safetensors", str(second)]
    assert has_w("w.safetensors")
    assert not has_w("raft-small-vanilla")


@pytest.mark.parametrize("name", ["letter.pt", "missing.pt", "raft-tiny"])
def test_what_is_no_network_is_refused_and_not_offered(tmp_path, name):
    (tmp_path / "letter.pt").write_text("Dear page, I am not weights.", encoding="utf-8")
    given = str(tmp_path / name) if name.endswith(".pt") else name
    with pytest.raises(LcvError, match=name):
        add_network(given)
    assert len(networks.MODELS) == 3
    assert networks._sources == {}


@pytest.mark.parametrize(("name", "iters"), [("raft-small", 5), ("vcn-small", None)])
def test_the_slider_sets_the_iterations_of_a_network_that_iterates(monkeypatch, name, iters):
    monkeypatch.setattr(networks, "loaded", lcv.build)
    found = network.__wrapped__(name, 5)
    assert (found.model.spec.name, found.matcher.iters) == (name, iters)
