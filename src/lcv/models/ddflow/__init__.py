"""DDFlow: unsupervised flow, coarse to fine, with a learnable cost volume at each level."""

from __future__ import annotations

from lcv.models.ddflow.model import DDFlow, ddflow

__all__ = ["DDFlow", "ddflow"]
