"""Studies: measurements that the curves of a sweep cannot show, each at one target and kernel.

A study is a pure function of target, kernel, candidates, n and seed that returns arrays. It runs
for a few seeds on the cluster of the sweep, and its arrays become one dataset with a dimension
`seed`.
"""

from bqlib.studies.study import Study

__all__ = ["Study"]
