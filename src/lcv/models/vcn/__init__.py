"""VCN: volumetric correspondence networks, the full one and the small one."""

from __future__ import annotations

from lcv.models.vcn.model import VCN, vcn, vcn_small

__all__ = ["VCN", "vcn", "vcn_small"]
