"""`lcv attach`: a checkpoint with LCV put in at W = I, ready to be fine-tuned."""

from __future__ import annotations

from lcv.cli.parser import Parser
from lcv.files import check_output
from lcv.models.find import find


def run(arguments: list[str]) -> int:
    parser = Parser(
        "lcv attach", description="Put LCV at W = I into a checkpoint; no flow changes by that."
    )
    parser.add_argument("checkpoint", help="a file of any family, or a published name")
    parser.add_argument("output", help="the .safetensors file to write")
    parser.add_argument("--inner-product", default="elliptical", help="which kind (elliptical)")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing output")
    options = parser.parse_args(arguments)
    check_output(options.output, options.overwrite)
    source = find(options.checkpoint)

    from lcv.errors import ArgumentError
    from lcv.models.archive import read_checkpoint
    from lcv.models.build import spec_of
    from lcv.models.cards import card_from
    from lcv.models.families import as_found, write_weights
    from lcv.models.surgery import attach

    model, notes = as_found(read_checkpoint(source))
    for note in notes:
        print(note)
    if spec_of(model).inner_product != "euclidean":
        raise ArgumentError(
            f"{options.checkpoint}: has a W already (`{spec_of(model).inner_product}`); attaching "
            f"would throw it away. Fold it first with `lcv fold`."
        )
    plain = sum(p.numel() for p in model.parameters())
    model = attach(model, inner_product=options.inner_product)
    added = sum(p.numel() for p in model.parameters()) - plain
    card = card_from(source, [f"{options.inner_product} W = I put into {source.name}", *notes])
    write_weights(model, options.output, "lcv", card, overwrite=options.overwrite)
    print(f"{options.output}: {spec_of(model).name} with W = I, {added:,} parameters more")
    return 0
