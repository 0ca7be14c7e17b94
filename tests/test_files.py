"""Files appear whole or not at all."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import stat
import threading

import pytest

from lcv import files
from lcv.errors import FileError
from lcv.files import (
    LARGE,
    check_apart,
    check_output,
    check_writable,
    create_once,
    make_folder,
    only_one,
    read_json,
    refuse_link,
    sweep,
    temporary_stem,
    whole_file,
    write_text,
)


def test_a_file_appears_when_the_block_ends(tmp_path):
    path = tmp_path / "a.txt"
    with whole_file(path) as temporary:
        temporary.write_text("done")
        assert not path.exists()
    assert path.read_text() == "done"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_a_file_has_the_rights_of_any_new_file_and_the_mask_is_left_alone(tmp_path, monkeypatch):
    """The mask is the whole process's: another thread's file would be made under it."""
    before = os.umask(0o027)
    try:
        with monkeypatch.context() as patched:
            patched.setattr(os, "umask", lambda _: pytest.fail("the mask was changed"))
            with whole_file(tmp_path / "a.txt") as temporary:
                temporary.write_text("done")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o640


def test_nothing_is_left_behind_by_an_error(tmp_path):
    def fail():
        with whole_file(tmp_path / "a.txt") as temporary:
            temporary.write_text("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_refuses_is_a_sentence(tmp_path):
    def fail():
        with whole_file(tmp_path / "a.txt"):
            raise OSError(28, "No space left on device")

    with pytest.raises(
        FileError, match=r"a\.txt: writing failed, nothing was left behind.*No space"
    ):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten_unasked(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("mine")
    with pytest.raises(FileError, match=r"a\.txt: exists already; .* --overwrite"):
        check_output(path)
    with pytest.raises(FileError, match="exists already"), whole_file(path) as temporary:
        temporary.write_text("other")
    assert path.read_text() == "mine"
    with whole_file(path, overwrite=True) as temporary:
        temporary.write_text("other")
    assert path.read_text() == "other"


def test_a_folder_in_the_way_or_missing_is_named(tmp_path):
    with pytest.raises(FileError, match="this is a folder, wanted the name of a file"):
        check_output(tmp_path)
    with pytest.raises(FileError, match="the folder .*none does not exist; make it first"):
        check_output(tmp_path / "none" / "a.txt")
    (tmp_path / "z.pth").write_text("a file")
    for inside in ("a.txt", "folder/a.txt"):
        with pytest.raises(FileError, match=r"a\.txt: \S+z\.pth is a file, wanted a folder"):
            check_output(tmp_path / "z.pth" / inside)


@pytest.mark.parametrize("links", [True, False])
def test_a_file_that_appears_meanwhile_is_not_replaced(tmp_path, monkeypatch, links):
    path = tmp_path / "a.txt"

    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    if not links:
        monkeypatch.setattr(os, "link", refuse)
    else:  # nor in the instant after the last look
        monkeypatch.setattr("lcv.files.check_output", lambda *_: None)

    def write():
        with whole_file(path) as temporary:
            temporary.write_text("mine")
            path.write_text("another's")

    with pytest.raises(FileError, match=r"a\.txt: exists already"):
        write()
    assert path.read_text() == "another's"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_where_links_are_impossible_files_appear_all_the_same(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    with whole_file(tmp_path / "a.txt") as temporary:
        temporary.write_text("done")
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.parametrize(
    ("name", "reason"), [("n" * 256, "File name too long"), ("a\0b", "null byte")]
)
def test_a_name_that_no_file_can_have_is_a_sentence(tmp_path, name, reason):
    with (
        pytest.raises(FileError, match=f"cannot write here: .*{reason}"),
        whole_file(tmp_path / name),
    ):
        pass
    with whole_file(tmp_path / ("n" * 255)) as temporary:
        temporary.write_text("a name that just fits")
    assert len(list(tmp_path.iterdir())) == 1


def test_a_folder_that_refuses_new_files_is_a_sentence(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with (
        pytest.raises(FileError, match=r"a\.txt: cannot write here: Permission denied"),
        whole_file(tmp_path / "a.txt"),
    ):
        pass


def test_a_folder_is_made_with_those_above_it_or_refused_in_a_sentence(tmp_path):
    folder = tmp_path / "a" / "b"
    for _ in range(2):  # one that is there stays
        make_folder(folder)
        assert folder.is_dir()
    (folder / "file").touch()
    with pytest.raises(FileError, match="file: is a file, wanted a folder to write into"):
        make_folder(folder / "file")
    with pytest.raises(FileError, match="below: this folder cannot be made: Not a directory"):
        make_folder(folder / "file" / "below")


def test_only_one_at_a_time_and_no_lock_is_left(tmp_path):
    inside, most = [], []

    def work():
        for _ in range(50):
            with only_one(tmp_path / "a"):
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(most), max(most)) == (200, 1)
    assert list(tmp_path.iterdir()) == []


def test_who_must_not_wait_is_told(tmp_path):
    with (
        only_one(tmp_path / "a", "somebody is here"),
        pytest.raises(FileError, match="^somebody is here$"),
        only_one(tmp_path / "a", "somebody is here"),
    ):
        pass
    with only_one(tmp_path / "a", "somebody is here"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_file_system_without_locks_stops_nobody(tmp_path, monkeypatch):
    def refuse(handle, kind):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with only_one(tmp_path / "a"), only_one(tmp_path / "b", "busy"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_created_once_and_the_first_one_wins(tmp_path):
    path = tmp_path / "a.json"
    found = []
    threads = [
        threading.Thread(target=lambda n=n: found.append(create_once(path, f"{n}")))
        for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [path.read_text()] * 8
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]
    with pytest.raises(FileError, match="does not exist"):
        create_once(tmp_path / "none" / "a.json", "")


def test_who_comes_second_is_told_so_even_if_the_temporary_was_swept(tmp_path, monkeypatch):
    """As by a process that begins at that moment, and finds the first one's file."""
    path, publish = tmp_path / "a.json", files._publish

    def late(temporary, path, overwrite):
        path.write_text("first")
        sweep([path])
        publish(temporary, path, overwrite)

    monkeypatch.setattr(files, "_publish", late)
    assert create_once(path, "second") == path.read_text() == "first"
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


def test_a_link_is_refused_wherever_it_leads(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "file")
    (tmp_path / "nowhere").symlink_to(tmp_path / "nothing")
    for name in ("link", "nowhere"):
        with pytest.raises(FileError, match=f"{name}: is a link, which is not followed here"):
            refuse_link(tmp_path / name)
    for name in ("file", "nothing"):
        refuse_link(tmp_path / name)


def test_what_was_left_half_written_is_told_from_files_of_others(tmp_path):
    names = [".a.flo.0123456789abcdef.part", ".b.flo.0123456789abcdef.part", ".part", "a.part"]
    for name in (*names, "a.flo"):
        (tmp_path / name).touch()
    sweep([tmp_path / "b.flo", tmp_path / "none" / "c.flo"])
    assert {path.name for path in tmp_path.iterdir()} == {*names, "a.flo"} - {names[1]}
    long = "n" * 60 + ".flo"
    with whole_file(tmp_path / long) as temporary:
        sweep([tmp_path / ("n" * 61 + ".flo")])
        assert temporary.exists(), "of another that begins alike"
        sweep([tmp_path / long])
        assert not temporary.exists()
        temporary.touch()


def test_an_output_that_is_an_input_is_refused(tmp_path):
    (tmp_path / "a").touch()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    check_apart([tmp_path / "b"], [tmp_path / "a"])
    for name in ("a", "link", "../" + tmp_path.name + "/a"):
        with pytest.raises(FileError, match=r"is the input .*a itself, and inputs are never"):
            check_apart([tmp_path / name], [tmp_path / "a"])


def test_a_folder_that_cannot_be_written_to_is_said(tmp_path, monkeypatch):
    check_writable(tmp_path / "a", tmp_path)
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(FileError, match="may not be written to; choose another place"):
        check_writable(tmp_path / "a", tmp_path)


def test_text_is_written_whole_and_read_back_as_json(tmp_path):
    path = tmp_path / "a.json"
    write_text(path, '{"format": "x 1", "name": "é"}')
    assert path.read_bytes() == '{"format": "x 1", "name": "é"}'.encode()
    with pytest.raises(FileError, match="exists already"):
        write_text(path, "{}")
    assert read_json(path, "a card") == read_json(path, "a card", "x 1")
    assert read_json(path, "a card")["name"] == "é"
    with pytest.raises(FileError, match="its format is 'x 1', not 'x 2'; wanted a card"):
        read_json(path, "a card", "x 2")
    for text, message in (
        ("[1]", "holds a list; wanted a card"),
        ("{", "is not JSON; wanted a card"),
        ("[" * 100_000, "is not JSON; wanted a card"),
    ):
        write_text(path, text, overwrite=True)
        with pytest.raises(FileError, match=rf"a\.json: {message}"):
            read_json(path, "a card")
    with pytest.raises(FileError, match=r"b\.json: cannot be read: No such file"):
        read_json(tmp_path / "b.json", "a card")
    os.mkfifo(tmp_path / "pipe.json")
    for odd in ("", "pipe.json"):
        with pytest.raises(FileError, match="cannot be read: it is not an ordinary file"):
            read_json(tmp_path / odd, "a card")
    with path.open("wb") as file:
        file.truncate(LARGE + 1)
    with pytest.raises(FileError, match="is larger than 100,000,000 bytes; wanted a card"):
        read_json(path, "a card")


def test_a_temporary_is_named_after_its_file_up_to_40_characters():
    assert temporary_stem("n" * 40) == "n" * 40
    name = "abcdefgh" * 5 + "x"
    assert temporary_stem(name) == f"{name[:31]}~{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    assert len(temporary_stem(name)) == 40


def test_a_lock_has_the_rights_of_any_new_file_and_what_cannot_be_locked_is_a_sentence(
    tmp_path, monkeypatch
):
    before = os.umask(0o027)
    try:
        with only_one(tmp_path / "a"):
            assert stat.S_IMODE((tmp_path / "a.lock").stat().st_mode) == 0o640
    finally:
        os.umask(before)
    with (
        pytest.raises(FileError, match=r"a\.lock: cannot be made and locked: No such file"),
        only_one(tmp_path / "none" / "a"),
    ):
        pass
    closed, close = [], os.close
    monkeypatch.setattr(os, "close", lambda handle: closed.append(handle) or close(handle))

    def fail(handle, kind):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(fcntl, "flock", fail)
    for busy in (None, "busy"):
        with (
            pytest.raises(FileError, match=r"a\.lock: cannot be made and locked: Input/output"),
            only_one(tmp_path / "a", busy),
        ):
            pass
    assert len(closed) == 2


def test_a_lock_that_was_removed_meanwhile_is_made_anew(tmp_path, monkeypatch):
    """Its last holder takes the file away between our opening and locking it."""
    lock, handles, flock = tmp_path / "a.lock", [], fcntl.flock

    def late(handle, kind):
        handles.append((handle, kind))
        if len(handles) == 1:
            lock.unlink()
        flock(handle, kind)

    monkeypatch.setattr(fcntl, "flock", late)
    with only_one(tmp_path / "a"):
        assert lock.exists()
    assert [kind for _, kind in handles] == [fcntl.LOCK_EX] * 2
    assert not lock.exists()
