"""LCV fine-tuning of a published network: W joins at I, leaves it, and P stays a rotation."""

from __future__ import annotations

from dataclasses import replace

import torch

import lcv
from lcv.models.archive import read_checkpoint
from lcv.models.weights import fit
from lcv.recipes import load_recipe
from lcv.train import DataConfig, run
from lcv.train.network import make_model
from testing.shared import shared


def test_it_begins_with_the_checkpoints_flow_and_w_then_leaves_i(tmp_path):
    weights = str(shared("weights", "raft-small.pth"))
    frames = [shared("data", "chairs", "data", f"00001_img{t}.ppm") for t in (1, 2)]
    recipe = load_recipe("lcv_finetune")
    config = replace(
        recipe,
        model=replace(recipe.model, name="raft-small", weights=weights),
        data=DataConfig(recipe="quick", size=(64, 96), ahead=2),
        loss=replace(recipe.loss, iters=4),
        steps=6,
        batch=2,
        validate_every=0,
        folder=str(tmp_path / "run"),
    )
    vanilla = lcv.build("raft-small", inner_product="euclidean").eval()
    fit(vanilla, read_checkpoint(weights))
    start = make_model(config)[0].eval()
    eye = torch.eye(128)
    assert torch.equal(start.inner_product.matrix(), eye)
    images = [torch.from_numpy(lcv.read_image(path)).movedim(2, 0)[None].float() for path in frames]
    pair = [image[..., 128:260, 160:330] for image in images]
    with torch.no_grad():
        flow = vanilla(*pair).flow
        assert torch.equal(start(*pair).flow, flow)
    assert flow.norm(dim=1).mean() > 1, "a flow of nothing would be easy to reproduce"

    tuned = run(config, device="cpu").eval()
    product = tuned.inner_product
    W, P = product.matrix().detach(), product.rotation().detach()
    assert (W - eye).abs().max() > 1e-5
    assert (P - eye).abs().max() > 0, "P has not moved, and the next line says nothing"
    # A column of PᵀP is 128 products; each of a solve's roundings is at most half an epsilon.
    torch.testing.assert_close(P.mT @ P, eye, atol=128 * torch.finfo(P.dtype).eps, rtol=0)
    assert (product.eigenvalues() > 0).all()
    moved = {n for n, v in tuned.state_dict().items() if not torch.equal(v, start.state_dict()[n])}
    assert moved == {name for name, _ in tuned.named_parameters()}, "all of it is tuned"
