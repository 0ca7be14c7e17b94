"""Speed, memory and exactness of networks beside their peers, measured in one run.

    bench(plan_table(["raft-small"], [Point(440, 1024)]), repeats=3)["rows"]

cells (what there is to measure), growth and plan decide; run hands jobs to a process (worker), which
makes calls and measures them; table and plot show.
"""

from lcv.bench.cells import Point
from lcv.bench.plan import Plan, plan_growth, plan_table
from lcv.bench.run import bench
from lcv.bench.table import bench_tables

__all__ = ["Plan", "Point", "bench", "bench_tables", "plan_growth", "plan_table"]
