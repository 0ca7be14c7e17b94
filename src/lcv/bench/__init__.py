"""Speed and memory of networks, measured in processes of their own.

bench(["raft-small"], [(436, 1024)], repeats=3)["rows"]
"""

from lcv.bench.cells import Cell, bench, every_cell
from lcv.bench.table import bench_table

__all__ = ["Cell", "bench", "bench_table", "every_cell"]
