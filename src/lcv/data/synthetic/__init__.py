"""The procedural source: layered scenes with exact flow and exact occlusion, made where they train.

    from lcv.data.synthetic import TRAINING, generate

    batch = generate(TRAINING, seed=1, indices=range(48), size=(368, 496), device="cuda")

A scene is a background and objects with random outlines over textures, flat or in space. Its layers
move by maps that invert in closed form, so flow and occlusion are exact in both directions. Every
pair is a function of (recipe, seed, index, size, textures) and of nothing else.
"""

from lcv.data.synthetic.benchmark import benchmark_pairs
from lcv.data.synthetic.recipe import BENCHMARK, MODERATE, QUICK, RECIPES, TRAINING
from lcv.data.synthetic.sequence import Batch, SequenceBatch, generate, generate_sequence
from lcv.data.synthetic.settings import Mixture, Recipe, Space
from lcv.data.synthetic.textures import load_bank, procedural_bank
from lcv.data.synthetic.write import write_dataset

__all__ = [
    "BENCHMARK",
    "MODERATE",
    "QUICK",
    "RECIPES",
    "TRAINING",
    "Batch",
    "Mixture",
    "Recipe",
    "SequenceBatch",
    "Space",
    "benchmark_pairs",
    "generate",
    "generate_sequence",
    "load_bank",
    "procedural_bank",
    "write_dataset",
]
