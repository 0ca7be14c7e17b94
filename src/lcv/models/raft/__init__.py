"""RAFT, large and small."""

from lcv.models.raft.model import RAFT, Features, raft_large, raft_small

__all__ = ["RAFT", "Features", "raft_large", "raft_small"]
