@reconciler@"""Each @kind@ becomes a ConfigMap with its text."""
@decorator@"""Each @kind@ with the annotation @name@/label gets the label @name@ with its value."""

@decorator@import re
@decorator@
@reconciler@from crd import CRD
@reconciler@from innkeeper import complete
@decorator@from innkeeper import complete, failed

KIND = {
    "apiVersion": "@api_version@",
    "kind": "@kind@",
    "plural": "@plural@",
@cluster@    "scope": "Cluster",
}
@reconciler@CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "plural": "configmaps"}

@decorator@# At most 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends.
@decorator@LABEL_VALUE = re.compile("([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")


def describe():
    """Returns the `manifest` document."""
    return {
        "name": "@name@",
        "version": "0.1.0",
        "primary": KIND,
@reconciler@        "owned": [{"kind": CONFIG_MAP}],
@reconciler@        "crds": [CRD],
@decorator@        # The guest only merges: its ServiceAccount needs no rights to create or delete objects.
@decorator@        "owned": [{"kind": KIND, "merges": True}],
@decorator@        "decorates": True,
    }


def reconcile(observed):
    """Computes the desired state from an `observed` document."""
@reconciler@    name = observed["object"]["metadata"]["name"]
@reconciler@    spec = observed["object"]["spec"]
@namespaced_reconciler@    metadata = {"name": name}
@cluster_reconciler@    metadata = {"name": name, "namespace": spec["namespace"]}
@reconciler@    config_map = {
@reconciler@        "apiVersion": "v1",
@reconciler@        "kind": "ConfigMap",
@reconciler@        "metadata": metadata,
@reconciler@        "data": {"text": spec["text"]},
@reconciler@    }
@reconciler@    return complete(objects=[{"object": config_map}], status={"configMap": name})
@decorator@    metadata = observed["object"]["metadata"]
@decorator@    label = metadata.get("annotations", {}).get("@name@/label")
@decorator@    if label is None:
@decorator@        return complete()
@decorator@    if not LABEL_VALUE.fullmatch(label):
@decorator@        message = f"the annotation @name@/label is not the value of a label: {label}"
@decorator@        return failed("InvalidAnnotation", message, permanent=True)
@decorator@    merged = {
@decorator@        "apiVersion": KIND["apiVersion"],
@decorator@        "kind": KIND["kind"],
@decorator@        "metadata": {"name": metadata["name"], "labels": {"@name@": label}},
@decorator@    }
@decorator@    return complete(objects=[{"object": merged, "policy": ["merge"]}])
