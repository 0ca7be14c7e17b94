"""Example pairs as arrays."""

from __future__ import annotations

from lcv.data.synthetic.gallery import samples


def test_samples_are_arrays_for_pictures(bank):
    arrays = samples(count=2, size=(48, 72), textures=bank)
    assert arrays["image1"].shape == (2, 48, 72, 3)
    assert arrays["image1"].dtype == "uint8"
    assert arrays["flow"].shape == (2, 48, 72, 2)
    assert arrays["occluded"].shape == (2, 48, 72)
