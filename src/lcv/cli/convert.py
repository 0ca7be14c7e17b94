"""`lcv convert`: the same weights under another family's names."""

from __future__ import annotations

from lcv.cli.parser import Parser
from lcv.files import check_output
from lcv.models.find import find


def run(arguments: list[str]) -> int:
    parser = Parser(
        "lcv convert",
        description="Rewrite a checkpoint under other names. Reads RAFT's, torchvision's and "
        "ptlflow's files, VCN's, DDFlow's variables (.npz) and our own.",
    )
    parser.add_argument("checkpoint", help="a file of any family, or a published name")
    parser.add_argument(
        "output",
        help="the file to write: .safetensors (ours), .pth or .tar (RAFT's and VCN's authors, "
        "torchvision), .npz (DDFlow's TensorFlow variables)",
    )
    parser.add_argument(
        "--to", choices=("lcv", "authors", "torchvision"), help="by ending if absent"
    )
    parser.add_argument("--half", action="store_true", help="store in float16")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing output")
    options = parser.parse_args(arguments)
    check_output(options.output, options.overwrite)
    source = find(options.checkpoint)

    from lcv.models.archive import read_checkpoint
    from lcv.models.build import spec_of
    from lcv.models.cards import card_from
    from lcv.models.families import as_found, write_weights

    model, notes = as_found(read_checkpoint(source))
    for note in notes:
        print(note)
    card = card_from(source, [f"converted from {source.name}", *notes], half=options.half)
    write_weights(
        model, options.output, options.to, card, half=options.half, overwrite=options.overwrite
    )
    print(f"{options.output}: {spec_of(model).name}, W: {spec_of(model).inner_product}")
    return 0
