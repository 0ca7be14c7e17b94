"""Half precision in an ONNX model: convolutions in float16, with float32 around them.

Coordinates and costs stay in float32: float16 has no odd numbers above 2048, and a flow is the
difference of two coordinates.
"""

from __future__ import annotations

from typing import Any

CONVOLUTIONS = ("Conv", "ConvTranspose")
PASSES_ON = ("Slice", "Split", "Concat")  # may lie between a stored weight and its convolution


def halved(model: Any) -> Any:
    """The `onnx.ModelProto` with its convolutions in float16, and their weights stored so."""
    from onnx import ModelProto, TensorProto, helper, numpy_helper

    model = ModelProto.FromString(model.SerializeToString())
    graph = model.graph
    stored = _weights(graph, TensorProto.FLOAT)
    for each in graph.initializer:
        if each.name in stored:
            half = numpy_helper.to_array(each).astype("float16")
            each.CopyFrom(numpy_helper.from_array(half, each.name))
    nodes = []
    for node in graph.node:
        if node.op_type not in CONVOLUTIONS:
            nodes.append(node)
            continue
        for place, name in enumerate(node.input):
            if name and name not in stored:
                node.input[place] = f"{node.output[0]}_{place}"
                cast = helper.make_node("Cast", [name], [node.input[place]], to=TensorProto.FLOAT16)
                nodes.append(cast)
        result = node.output[0]
        node.output[0] = f"{result}_half"
        nodes += [node, helper.make_node("Cast", node.output, [result], to=TensorProto.FLOAT)]
    new = helper.make_graph(nodes, graph.name, graph.input, graph.output, graph.initializer)
    graph.CopyFrom(new)
    return model


def _weights(graph: Any, kind: int) -> set[str]:
    """Stored tensors of this kind that only convolutions use, and what is cut or joined of them."""
    users: dict[str, list[Any]] = {}
    for node in graph.node:
        for name in node.input:
            users.setdefault(name, []).append(node)
    found = {each.name for each in graph.initializer if each.data_type == kind}
    cut = [node for node in graph.node if node.op_type in PASSES_ON]
    for node in cut:  # in the order in which they are computed
        if found.issuperset(_data(node)):
            found |= {*node.output}

    def is_fine(name: str) -> bool:
        return all(
            node.op_type in CONVOLUTIONS
            or (node.op_type in PASSES_ON and name in _data(node) and found.issuperset(node.output))
            for node in users.get(name, [])
        )

    while True:  # one that drops out may take others with it
        kept = {name for name in found if is_fine(name)}
        for node in cut:
            if not kept.issuperset(_data(node)):
                kept -= {*node.output}
        if kept == found:
            return found
        found = kept


def _data(node: Any) -> list[str]:
    """What a node cuts or joins; its other inputs say where."""
    return list(node.input) if node.op_type == "Concat" else list(node.input[:1])
