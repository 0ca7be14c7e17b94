"""`lcv convert`: the same weights under another family's names."""

from __future__ import annotations

import argparse


def run(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        "lcv convert",
        description="Rewrite a checkpoint under other names. Reads RAFT's, torchvision's and "
        "ptlflow's files, VCN's, DDFlow's variables (.npz) and our own.",
    )
    parser.add_argument("checkpoint", help="the file to read")
    parser.add_argument("output", help="the file to write: .safetensors (ours) or .pth")
    parser.add_argument(
        "--to", choices=("lcv", "authors", "torchvision"), help="by ending if absent"
    )
    parser.add_argument("--half", action="store_true", help="store in float16")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing output")
    options = parser.parse_args(arguments)

    from lcv.files import check_output
    from lcv.models.archive import read_checkpoint
    from lcv.models.build import spec_of
    from lcv.models.cards import Card
    from lcv.models.families import as_found, write_weights

    check_output(options.output, options.overwrite)
    model, notes = as_found(read_checkpoint(options.checkpoint))
    for note in notes:
        print(note)
    card = Card(notes=[f"converted from {options.checkpoint}", *notes])
    write_weights(
        model, options.output, options.to, card, half=options.half, overwrite=options.overwrite
    )
    print(f"{options.output}: {spec_of(model).name}, W: {spec_of(model).inner_product}")
    return 0
