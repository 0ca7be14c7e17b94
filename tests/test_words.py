"""What somebody may have meant: the nearest names, or nothing."""

from __future__ import annotations

import pytest

from lcv.words import counted, did_you_mean, meant, names_near, printable

KNOWN = ("raft-large", "raft-small", "vcn")


@pytest.mark.parametrize(
    ("word", "most", "sentence"),
    [
        ("raft-smal", 1, " (did you mean raft-small?)"),
        ("RAFT-SMAL", 1, " (did you mean raft-small?)"),
        ("raft-smarge", 2, " (did you mean raft-small or raft-large?)"),
        ("", 1, ""),
        ("pwc-net", 3, ""),
    ],
)
def test_sentences(word, most, sentence):
    found = did_you_mean(word, KNOWN, most)
    assert sorted(found.replace("?)", " ").split()) == sorted(sentence.replace("?)", " ").split())
    assert found == meant(names_near(word, KNOWN, most))
    assert found == did_you_mean(word, iter(KNOWN), most)


def test_a_known_name_is_nearest_to_itself():
    for name in KNOWN:
        assert names_near(name, KNOWN) == [name]


def test_control_characters_are_shown_and_not_sent():
    assert printable("a\tb\nλ × é 日本") == "a\tb\nλ × é 日本"
    assert (
        printable("\x1b]0;owned\x07\r\x9b31m\x7f")
        == "\\u001b]0;owned\\u0007\\u000d\\u009b31m\\u007f"
    )
    assert printable(b"caf\xe9".decode("utf-8", "surrogateescape")) == "caf\\udce9"
    assert printable("a\u202egnp.exe\u2066") == "a\\u202egnp.exe\\u2066"


def test_one_is_singular():
    words = [counted(number, "pair") for number in (0, 1, 2, 1041)]
    assert words == ["0 pairs", "1 pair", "2 pairs", "1,041 pairs"]


def test_the_nearest_comes_first_and_one_alone_unless_more_are_wanted():
    assert names_near("raft-smarge", ("raft-large", "raft-small", "raft-smarg")) == ["raft-smarg"]
    assert names_near("raft-smarge", KNOWN, 1) == names_near("raft-smarge", KNOWN, 2)[:1]
    assert did_you_mean("raft-smal", KNOWN) == " (did you mean raft-small?)"
    assert meant(["a", "b"]) == " (did you mean a or b?)"
    assert meant([]) == ""
