"""Networks as files that run without lcv: programs of torch.export, and ONNX.

from lcv.export import export_model

export_model(lcv.load("raft-small", weights=file), "raft-small.onnx", weights=file)
"""

from lcv.export.describe import table
from lcv.export.make import export_model, read_metadata

__all__ = ["export_model", "read_metadata", "table"]
