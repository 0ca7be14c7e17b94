"""The parser of all verbs: every mistake is one sentence, and Python's names become options."""

from __future__ import annotations

import argparse
import re

import pytest

from lcv.cli import main as cli
from lcv.cli import parser as module
from lcv.cli.parser import Parser, in_options, remember, seconds, size
from lcv.errors import ArgumentError

# How each parser of the command line is reached, but for those that only lead to others; `train`
# has the parser of another package.
GROUPS = [["data"], ["submit"], ["view", "figure"]]
ALONE = [[verb] for verb in cli.VERBS if verb != "train"]
PLACES = [
    *(place for place in ALONE if place not in GROUPS),
    *(["data", "check"], ["data", "make"]),
    *(["submit", "sintel"], ["submit", "kitti"], ["submit", "check"]),
    *(["view", "figure", "methods"], ["view", "figure", "difference"]),
    *(["view", "video"], ["robust", "learn"]),
]


def said(capsys, *words):
    """The one line of an error, which leaves with 2."""
    assert cli.main([*words]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("lcv: ")
    return captured.err.removeprefix("lcv: ").rstrip("\n")


def parser_at(place, monkeypatch):
    """The last parser that the words of a place come to."""
    reached = []

    def stop(self, args=None, namespace=None):
        reached.append(self)
        return known(self, args, namespace)

    known = Parser.parse_known_args
    monkeypatch.setattr(Parser, "parse_known_args", stop)
    with pytest.raises(SystemExit) as left:
        cli.main([*place, "--help"])
    assert left.value.code == 0
    monkeypatch.undo()
    return reached[-1]


@pytest.mark.parametrize("place", PLACES, ids=" ".join)
def test_an_option_with_a_slip_is_named_with_the_nearest_and_the_help(place, monkeypatch, capsys):
    parser = parser_at(place, monkeypatch)
    capsys.readouterr()
    known = [option for action in parser._actions for option in action.option_strings]
    slips = {option[:-2] + option[-1] for option in known if len(option) > 6} - {*known}
    assert slips
    for slip in slips:
        words = said(capsys, *place, slip)
        assert words.startswith(f"there is no option {slip} (did you mean --")
        assert words.endswith(f"; `lcv {' '.join(place)} --help` lists all options")


@pytest.mark.parametrize("place", PLACES, ids=" ".join)
def test_every_number_that_is_none_is_refused_by_name(place, monkeypatch, capsys):
    for action in parser_at(place, monkeypatch)._actions:
        option = action.option_strings[-1:] and action.option_strings[-1]
        if option and action.type is not None and action.nargs is None and option != "--output":
            capsys.readouterr()
            name = "/".join(action.option_strings)
            assert said(capsys, *place, option, "x7").startswith(f"{name} is 'x7', wanted ")


# What is taken where nothing is said, as docs/ and the helps have it; everything else has none.
DEFAULTS = {
    "predict": {"scale": "auto", "every": 1, "strategy": "auto", "precision": "auto"},
    "view": {"spacing": 16},
    "view video": {"spacing": 16},
    "eval": {"protocol": "raft"},
    "ablate": {"columns": ["paper"], "seeds": [0, 1, 2], "pairs": 200, "split": "hash"},
    "robust": {"rule": "zero", "margin": 32.0, "protocol": "raft", "pictures": 1},
    "robust learn": {
        "data": "procedural",
        "size": (256, 384),
        "recipe": "training",
        "steps": 1500,
        "batch": 4,
        "rate": 6.0,
        "side": 100,
        "diameters": (97.5, 102.5),
        "rotation": 5.0,
        "margin": 32.0,
        "near": 0.5,
        "start": "noise",
        "pool": 256,
        "iters": 8,
    },
    "inspect": {"count": 3},
    "attach": {"inner_product": "elliptical"},
    "bench": {"repeats": 10, "seconds": 2.0, "device": "cpu"},
    "demo": {"host": "127.0.0.1", "iters": 12},
    "data check": {"pairs": 200},
    "data make": {
        "recipe": "training",
        "count": 100,
        "frames": 2,
        "size": (368, 496),
        "device": "cpu",
    },
}


@pytest.mark.parametrize("place", PLACES, ids=" ".join)
def test_what_an_option_is_where_nothing_is_said(place, monkeypatch):
    found = {
        action.dest: action.default
        for action in parser_at(place, monkeypatch)._actions
        if action.default not in (None, False, [], argparse.SUPPRESS)
    }
    assert found == DEFAULTS.get(" ".join(place), {})


@pytest.mark.parametrize("place", GROUPS, ids=" ".join)
def test_what_comes_after_a_verb_is_suggested(place, capsys):
    first = next(each[-1] for each in PLACES if each[:-1] == place)
    words = said(capsys, *place, first[:-1])
    assert words.startswith(f"there is no `lcv {' '.join(place)} {first[:-1]}`, wanted {first}")
    assert f"(did you mean {first}?)" in words
    assert said(capsys, *place).startswith("missing: ")


@pytest.fixture
def parser():
    made = Parser("lcv try")
    made.add_argument("place", help="a place")
    made.add_argument("-o", "--output", required=True, metavar="FILE", help="where 100 %% goes")
    made.add_argument("--kind", choices=("left", "right"))
    made.add_argument("--size", nargs=2, type=int, metavar=("H", "W"))
    made.add_argument("--rate", type=float)
    made.add_argument("--max-memory")
    made.add_argument("--overwrite", action="store_true")
    return made


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "missing: place (a place), -o/--output FILE (where 100 % goes)"),
        ("a", "missing: -o/--output FILE (where 100 % goes)"),
        ("a -o", "-o/--output: too few values or too many, wanted one: FILE (where 100 % goes)"),
        ("a b -o c", "b: no place for this here, wanted an option or nothing"),
        ("a -o c --kind rigth", "--kind is 'rigth', wanted left or right (did you mean right?)"),
        ("a -o c --kind up", "--kind is 'up', wanted left or right"),
        ("a -o c --size 1", "--size: too few values or too many, wanted 2: H W"),
        ("a -o c --size 1 2.5", "--size is '2.5', wanted a whole number"),
        ("a -o c --rate nan", "--rate is 'nan', wanted a number"),
        ("a -o c --overwrite=1", "--overwrite is given the value '1', but takes none"),
        ("a -o c --over", "there is no option --over (did you mean --overwrite?)"),
        ("--max_memory 3", "there is no option --max_memory (did you mean --max-memory?)"),
    ],
)
def test_sentences(parser, line, message):
    with pytest.raises(ArgumentError) as refused:
        parser.parse_args(line.split())
    assert str(refused.value) == f"{message}; `lcv try --help` lists all options"


def test_what_is_right_is_read(parser):
    found = parser.parse_args(["a", "-o", "c", "--size", "1", "-2", "--rate=1e-3", "--overwrite"])
    assert (found.place, found.output, found.size) == ("a", "c", [1, -2])
    assert (found.rate, found.overwrite, found.kind) == (1e-3, True, None)
    assert parser.parse_args(["-o", "c", "--", "--odd"]).place == "--odd"


@pytest.mark.parametrize(
    ("kind", "right", "wrong"),
    [
        (module.whole, {"1": 1, "12": 12}, ["0", "-1", "1.5", "x", "", "²", "1e3"]),
        (module.frames, {"2": 2}, ["1", "x"]),
        (module.count, {"0": 0, "7": 7}, ["-1", "x"]),
        (module.integer, {"-3": -3}, ["x", "1.5"]),
        (module.number, {"-1.5": -1.5, "0": 0}, ["nan", "inf", "x"]),
        (
            module.seconds,
            {"0": 0, "2.5": 2.5, "1:30": 90, "1:00:01": 3601},
            ["-1", "x", "1:", ":5", "1:2:3:4", "1e3", ""],
        ),
        (module.positive, {"0.5": 0.5}, ["0", "-1", "nan", "inf", "x"]),
        (module.not_negative, {"0": 0, "2.5": 2.5}, ["-0.1", "nan", "x"]),
        (module.device_name, {"cpu": "cpu"}, ["gpu", "cuda:x", "CPU", "cuda:", "meta", ""]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_kinds_of_values(kind, right, wrong):
    assert {text: kind(text) for text in right} == right
    for text in wrong:
        with pytest.raises(argparse.ArgumentTypeError, match="^is '.*', wanted "):
            kind(text)


@pytest.mark.parametrize(
    ("gpus", "text", "message"),
    [
        (0, "cuda", "wanted cpu: there is no GPU here that torch can use"),
        (2, "cuda:2", "is 'cuda:2', wanted cuda:0 or cuda:1"),
    ],
)
def test_a_gpu_that_is_not_there(monkeypatch, gpus, text, message):
    monkeypatch.setattr("torch.cuda.is_available", lambda: gpus > 0)
    monkeypatch.setattr("torch.cuda.device_count", lambda: gpus)
    with pytest.raises(argparse.ArgumentTypeError, match=message):
        module.device_name(text)
    if gpus:
        assert module.device_name("cuda:1") == "cuda:1"


@pytest.mark.parametrize(
    ("python", "options"),
    [
        ("max_memory is 1 MB, but", "--max-memory is 1 MB, but"),
        ("too much; raise max_memory or leave", "too much; raise --max-memory or leave"),
        ("vcn: none come with it; give size=3", "vcn: none come with it; give --size 3"),
        ("size is 3×3, wanted more", "--size is 3×3, wanted more"),
        ("draw_scene: size is 3×3, wanted more", "--size is 3×3, wanted more"),
        ("unknown kind 'up'; there are left", "--kind: unknown kind 'up'; there are left"),
        ("Config: there is no kind 'up'", "--kind: there is no kind 'up'"),
        ("all is bad:\n  kind is 3\n", "all is bad:\n  --kind is 3\n"),
        ("too small. Use a larger max_memory.", "too small. Use a larger --max-memory."),
        # What is not an argument stays as it is: paths, quotes, other words.
        ("use --size 3 (in Python size=3)", None),
        ("/data/max_memory/a.png: the size is odd", None),
        ("max_memory.png: its size is odd", None),
        ("folder/size=3: is a file", None),
        ("'max_memory' is no key, nor is my_max_memory", None),
        ("a kind of size is wanted", None),
        ("here: size is 3, wanted more", None),
        ("two are bad:\n  max_memory: there is no such file", None),
        ("no file matches max_memory*.png; there is no folder max_memory: mend its name", None),
    ],
)
def test_errors_from_below_speak_of_options(parser, tmp_path, monkeypatch, python, options):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    remember(parser._actions)
    assert in_options(python) == (python if options is None else options)


@pytest.mark.parametrize("word", ["warp_error", "warm_start/*.png", "max_memory"])
def test_a_path_with_the_name_of_an_option_is_told_as_it_was_given(
    word, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    words = said(capsys, "predict", word, "-o", "x")
    assert words.startswith(f"{word}: ")
    assert "--" not in words


def test_a_verb_does_not_speak_of_another_s_options(parser, capsys, monkeypatch):
    remember(parser._actions)

    def run(words):
        raise ArgumentError("max_memory is 3")

    monkeypatch.setattr(cli, "_run", run)
    assert said(capsys, "models") == "max_memory is 3"


def test_a_size_is_height_then_width():
    assert size("440x1024") == size(" 440 × 1024") == (440, 1024)
    for wrong in ("440", "0x5", "5x0", "4x4x4", "-4x4", "axb"):
        with pytest.raises(argparse.ArgumentTypeError, match="HxW, for instance 440x1024"):
            size(wrong)


def test_times_are_seconds_or_minutes_and_seconds():
    assert [seconds(text) for text in ("90", "2.5", "1:30", "1:02:03.5")] == [90, 2.5, 90, 3723.5]
    for text in ("", "-1", "1:", "1:2:3:4", "1m", "nan"):
        with pytest.raises(argparse.ArgumentTypeError, match="seconds, as in 2.5, or minutes"):
            seconds(text)


SENTENCES = {
    "the following arguments are required: FILE, -o/--output": "missing: FILE (to read), "
    "-o/--output OUT (where to write)",
    "one of the arguments --a --b is required": "wanted --a or --b, found none of them",
    "unrecognized arguments: --outpu 3": "--outpu 3: no place for this here, wanted an option or "
    "nothing (did you mean --output?)",
    "argument --a: not allowed with argument --b": "--a does not go together with --b; leave one of "
    "them out",
    "argument --size: expected 2 arguments": "--size: too few values or too many, wanted 2: H W",
    "argument --a: expected one argument": "--a: too few values or too many, wanted one:",
    "argument --a: is 'x', wanted\na number": "--a is 'x', wanted\na number",
    "argument --a: ignored explicit argument '3'": "--a is given the value '3', but takes none",
    "argument --a: something else": "--a: something else",
    "anything": "anything",
}


@pytest.mark.parametrize("message", SENTENCES)
def test_every_message_of_argparse_becomes_a_sentence(message):
    parser = Parser("lcv try")
    parser.add_argument("file", metavar="FILE", help="to read")
    parser.add_argument("-o", "--output", metavar="OUT", help="where to write")
    parser.add_argument("--size", nargs=2, metavar=("H", "W"))
    parser.add_argument("--a", action="store_true")
    wanted = f"{SENTENCES[message]}; `lcv try --help` lists all options"
    with pytest.raises(ArgumentError) as caught:
        parser.error(message)
    assert str(caught.value) == wanted


@pytest.mark.parametrize(
    ("kind", "good", "bad", "wanted"),
    [
        (module.integer, {"-3": -3, "0": 0}, ["1.5", "x"], "a whole number"),
        (module.whole, {"1": 1, "20": 20}, ["0", "-1", "1.0", "٣"], "a whole number of 1 or more"),
        (module.frames, {"2": 2}, ["1", "0"], "a whole number of 2 or more"),
        (module.count, {"0": 0, "7": 7}, ["-1"], "a whole number of 0 or more"),
        (module.number, {"-1.5": -1.5, "0": 0, "1e3": 1000}, ["nan", "inf", "x"], "a number"),
        (module.positive, {"0.5": 0.5, "1": 1}, ["0", "-1", "x", "inf"], "a number above 0"),
        (module.not_negative, {"0": 0, "2": 2}, ["-0.1"], "a number of 0 or more"),
        (
            module.seconds,
            {"90": 90, "1:30.5": 90.5, "1:00:01": 3601, "0:0:7": 7},
            ["-1", "1:", ":1", "1:2:3:4", "1.5:3"],
            "seconds, as in 2.5, or minutes and seconds, as in 1:30",
        ),
        (
            module.size,
            {"440x1024": (440, 1024), " 1 X 2 ": (1, 2), "3×4": (3, 4)},
            ["0x5", "5x0", "5", "5x"],
            "HxW, for instance 440x1024",
        ),
        (
            module.device_name,
            {"cpu": "cpu"},
            ["gpu", "cuda:", "cpu:0"],
            "cpu, cuda, or cuda:N for the GPU of number N",
        ),
    ],
)
def test_what_a_value_may_be(kind, good, bad, wanted):
    for text, value in good.items():
        assert kind(text) == value
    for text in bad:
        with pytest.raises(argparse.ArgumentTypeError) as caught:
            kind(text)
        assert str(caught.value) == f"is {text!r}, wanted {wanted}"


def test_gpus_by_number(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    for name in ("cuda", "cuda:0", "cuda:1"):
        assert module.device_name(name) == name
    with pytest.raises(argparse.ArgumentTypeError, match="is 'cuda:2', wanted cuda:0 or cuda:1"):
        module.device_name("cuda:2")
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    with pytest.raises(argparse.ArgumentTypeError, match="is 'cuda', wanted cpu: there is no GPU"):
        module.device_name("cuda")
    monkeypatch.undo()
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(
        argparse.ArgumentTypeError, match="is 'cuda:1', wanted cpu: there is no GPU"
    ):
        module.device_name("cuda:1")


def test_names_in_a_row():
    assert [module.either(names) for names in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == [
        "",
        "a",
        "a or b",
        "a, b or c",
    ]


@pytest.mark.parametrize(
    ("verb", "needed"),
    [
        ("predict", "INPUT, -o/--output OUT"),
        ("view", "flow, -o/--output"),
        ("view video", "frames, --flow NAME=FOLDER, -o/--output"),
        ("view figure", "methods | difference"),
        (
            "view figure methods",
            "--image FRAME, --flow NAME=FILE, -o/--output, --truth FLOW",
        ),
        ("view figure difference", "--image FRAME, --flow NAME=FILE, -o/--output"),
        ("report", "RUN, -o/--output PAGE.html"),
        ("export", "-o/--output"),
        ("inspect", "model, -o/--output FOLDER"),
        ("robust", "--data PLACE, -o/--output FOLDER"),
        ("robust learn", "-o/--output FILE.png"),
        ("data", "check | make"),
        ("data check", "dir"),
        ("data make", "out"),
        ("submit", "sintel | kitti | check"),
        ("submit sintel", "--data FOLDER, -o/--output OUT"),
        ("submit kitti", "--data FOLDER, -o/--output OUT"),
        ("submit check", "path, --kind"),
        ("attach", "checkpoint, output"),
        ("fold", "checkpoint, output"),
        ("convert", "checkpoint, output"),
    ],
)
def test_a_verb_alone_is_told_all_that_it_needs(verb, needed, capsys):
    assert cli.main(verb.split()) == 2
    said = capsys.readouterr().err.partition("missing: ")[2].partition("; `lcv ")[0]
    while (shorter := re.sub(r" \([^()]*\)", "", said)) != said:  # without what is said of each
        said = shorter
    assert said == needed
