"""How flow suffers when frames do: stresses as data, curves over their severity."""
