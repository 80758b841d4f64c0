"""The export of the component. The other files run in any Python too."""

from innkeeper.component import export

from quota import Quota

Reconciler = export(Quota)
