"""What the tests share: oracles, tolerances and the way to material outside the repository."""
