"""forest.py - a random forest from scikit-learn, written as TreeEnsembleClassifier."""

import numpy as np
from onnx import TensorProto, helper


def below(x):
    """The largest float32 that is not above a float64: keeps `feature <= threshold` as it was."""
    y = x.astype(np.float32)
    return np.where(y.astype(np.float64) > x, np.nextafter(y, np.float32(-np.inf)), y)


def train(trees, features, classes, samples):
    from sklearn.datasets import make_classification
    from sklearn.ensemble import RandomForestClassifier

    x, y = make_classification(samples, features, n_informative=features // 2, n_classes=classes, random_state=7)
    return RandomForestClassifier(trees, random_state=7, n_jobs=1).fit(x.astype(np.float32), y)


def to_onnx(forest, features, opset):
    nodes = {k: [] for k in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids")}
    leaves = {k: [] for k in ("treeids", "nodeids", "ids", "weights")}
    for t, estimator in enumerate(forest.estimators_):
        tree = estimator.tree_
        thresholds = below(tree.threshold)
        for i in range(tree.node_count):
            leaf = tree.children_left[i] < 0
            nodes["treeids"].append(t)
            nodes["nodeids"].append(i)
            nodes["featureids"].append(0 if leaf else int(tree.feature[i]))
            nodes["values"].append(0.0 if leaf else float(thresholds[i]))
            nodes["modes"].append("LEAF" if leaf else "BRANCH_LEQ")
            nodes["truenodeids"].append(0 if leaf else int(tree.children_left[i]))
            nodes["falsenodeids"].append(0 if leaf else int(tree.children_right[i]))
            if leaf:
                share = tree.value[i][0] / tree.value[i][0].sum() / len(forest.estimators_)
                for c, w in enumerate(share):
                    leaves["treeids"].append(t)
                    leaves["nodeids"].append(i)
                    leaves["ids"].append(c)
                    leaves["weights"].append(float(w))
    attributes = {"nodes_" + k: v for k, v in nodes.items()}
    attributes.update({"class_" + k: v for k, v in leaves.items()})
    classes = len(forest.classes_)
    node = helper.make_node(
        "TreeEnsembleClassifier", ["x"], ["label", "probabilities"], domain="ai.onnx.ml", post_transform="NONE",
        classlabels_int64s=[int(c) for c in forest.classes_], **attributes,
    )
    graph = helper.make_graph(
        [node], "forest", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", features])],
        [helper.make_tensor_value_info("label", TensorProto.INT64, ["N"]),
         helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["N", classes])],
    )
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8, producer_name="zoo")


def cases(forest, features, rows):
    """Inputs and results, by number of rows."""
    r = np.random.RandomState(11)
    for n in rows:
        x = r.standard_normal((n, features)).astype(np.float32) * 2
        p = forest.predict_proba(x)
        yield [x], [forest.classes_[p.argmax(1)].astype(np.int64), p.astype(np.float32)]
