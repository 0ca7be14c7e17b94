"""`lcv fold`: a checkpoint with W multiplied into the network, and nothing of it left."""

from __future__ import annotations

from lcv.cli.parser import Parser
from lcv.files import check_output
from lcv.models.find import find


def run(arguments: list[str]) -> int:
    parser = Parser(
        "lcv fold",
        description="Take LCV out of a RAFT checkpoint without changing its flow: Q with QᵀQ = W "
        "goes into the encoder's last convolution. VCN and DDFlow cannot be folded.",
    )
    parser.add_argument("checkpoint", help="a file with W, of any family")
    parser.add_argument("output", help=".safetensors (ours) or .pth (the authors' names)")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing output")
    options = parser.parse_args(arguments)
    check_output(options.output, options.overwrite)
    source = find(options.checkpoint)

    from lcv.errors import ArgumentError
    from lcv.models.archive import read_checkpoint
    from lcv.models.build import spec_of
    from lcv.models.cards import card_from
    from lcv.models.families import as_found, write_weights
    from lcv.models.surgery import fold

    model, notes = as_found(read_checkpoint(source))
    for note in notes:
        print(note)
    if spec_of(model).inner_product == "euclidean":
        raise ArgumentError(
            f"{source}: there is no W in this file, so there is nothing to fold and nothing was "
            f"written. It is a plain {spec_of(model).name}; `lcv convert` changes its names."
        )
    folded = fold(model)
    card = card_from(source, [f"W of {source.name} folded into the encoder", *notes])
    write_weights(folded, options.output, card=card, overwrite=options.overwrite)
    print(f"{options.output}: {spec_of(folded).name} without W, the same flow")
    return 0
