@reconciler@"""Each @kind@ becomes a ConfigMap with its text."""
@decorator@"""Each @kind@ with the annotation @name@/label gets the label @name@ with its value."""

from __future__ import annotations

@decorator@import re
@decorator@
@reconciler@from dataclasses import dataclass

@reconciler@from innkeeper import Context, Describe, Guest, Kind, Observed, Outcome, complete
@decorator@from innkeeper import BadInput, Context, Describe, Guest, Kind, Object, Observed, Outcome, complete
@reconciler@
@reconciler@from crd import CRD
@reconciler@
@reconciler@
@reconciler@@dataclass
@reconciler@class @kind@Spec:
@reconciler@    text: str
@cluster_reconciler@    namespace: str
@reconciler@
@reconciler@
@reconciler@@dataclass
@reconciler@class @kind@:
@reconciler@    spec: @kind@Spec

@namespaced_reconciler@PRIMARY = Kind("@api_version@", "@kind@", "@plural@", @kind@)
@cluster_reconciler@PRIMARY = Kind("@api_version@", "@kind@", "@plural@", @kind@, cluster_scoped=True)
@reconciler@CONFIG_MAP = Kind("v1", "ConfigMap", "configmaps")
@namespaced_decorator@PRIMARY = Kind("@api_version@", "@kind@", "@plural@")
@cluster_decorator@PRIMARY = Kind("@api_version@", "@kind@", "@plural@", cluster_scoped=True)
@decorator@
@decorator@# At most 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends.
@decorator@LABEL_VALUE = re.compile("([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")


@reconciler@class @kind@Guest(Guest[@kind@, None]):
@decorator@class @kind@Guest(Guest[Object, None]):
    manifest = (
        Describe.reconciler_of(PRIMARY, "@name@", "0.1.0")
@reconciler@        .owns(CONFIG_MAP)
@reconciler@        .crd(CRD)
@decorator@        .decorates()
@decorator@        # The guest only merges: its ServiceAccount needs no rights to create or delete objects.
@decorator@        .merges_into(PRIMARY)
        .manifest()
    )

@reconciler@    def reconcile(self, context: Context, observed: Observed[@kind@, None]) -> Outcome:
@reconciler@        spec = observed.primary.spec
@namespaced_reconciler@        config_map = CONFIG_MAP.object(observed.name, data={"text": spec.text})
@cluster_reconciler@        data = {"text": spec.text}
@cluster_reconciler@        config_map = CONFIG_MAP.object(observed.name, namespace=spec.namespace, data=data)
@reconciler@        return complete().add(config_map).status(configMap=observed.name)
@decorator@    def reconcile(self, context: Context, observed: Observed[Object, None]) -> Outcome:
@decorator@        label = observed.annotations.get("@name@/label")
@decorator@        if label is None:
@decorator@            return complete()
@decorator@        if not LABEL_VALUE.fullmatch(label):
@decorator@            message = f"the annotation @name@/label is not the value of a label: {label}"
@decorator@            raise BadInput("InvalidAnnotation", message)
@decorator@        return complete().add(PRIMARY.object(observed.name, labels={"@name@": label}), "merge")
