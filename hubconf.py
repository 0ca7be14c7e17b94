"""Networks for torch.hub: `torch.hub.load(repository, "raft_large", pretrained=True)`.

The weights lie in the repository, so that nothing else is fetched.
"""

import importlib.util
import sys
from pathlib import Path

dependencies = ["torch", "numpy", "safetensors"]

if importlib.util.find_spec("lcv") is None:  # a checkout that is not installed
    sys.path.insert(0, str(Path(__file__).resolve().parent / "src"))


def _network(name, pretrained, options):
    import lcv

    return lcv.load(name, **options) if pretrained else lcv.build(name, **options)


def raft_large(pretrained=False, **options):
    """RAFT with LCV; options: those of `lcv.build`, or of `lcv.load` if pretrained."""
    return _network("raft-large", pretrained, options)


def raft_small(pretrained=False, **options):
    """The small RAFT with LCV; options as for `raft_large`."""
    return _network("raft-small", pretrained, options)


def vcn(pretrained=False, **options):
    """VCN with LCV; pretrained needs weights=FILE."""
    return _network("vcn", pretrained, options)


def vcn_small(pretrained=False, **options):
    """The small VCN with LCV; pretrained needs weights=FILE."""
    return _network("vcn-small", pretrained, options)


def ddflow(pretrained=False, **options):
    """DDFlow with LCV; pretrained needs weights=FILE."""
    return _network("ddflow", pretrained, options)
