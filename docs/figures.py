"""Draw the pictures of the documentation: `python docs/figures.py [FOLDER]`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
from first_steps import figure_1

PICTURES = Path(__file__).parent / "pictures"

if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURES
    folder.mkdir(parents=True, exist_ok=True)
    print(figure_1(folder))
