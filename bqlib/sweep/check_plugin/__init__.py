"""Checks of a target, kernel, design, weight rule or integrand: does it do what sweeps rely on?

:func:`check_plugin` checks one; the command ``bqlib check-plugin`` prints what it finds.
"""

from bqlib.sweep import plugins
from bqlib.sweep.check_plugin.assertions import ANY_ERROR, Finding, Findings
from bqlib.sweep.check_plugin.functions import verify_design, verify_integrand, verify_weights
from bqlib.sweep.check_plugin.pairs import verify_kernel, verify_target

__all__ = ["Finding", "check_plugin"]

VERIFY = {
    "target": verify_target,
    "kernel": verify_kernel,
    "design": verify_design,
    "weights": verify_weights,
    "integrand": verify_integrand,
}


def check_plugin(kind, function, parameters):
    """Check a target, kernel, design, weight rule or integrand.

    Parameters
    ----------
    kind : {"target", "kernel", "design", "weights", "integrand"}
    function : class or function
    parameters : dict
        Its keyword arguments, without those that trials give.

    Returns
    -------
    list of Finding
    """
    findings = Findings()
    try:
        VERIFY[kind](findings, function, parameters)
    except ANY_ERROR as error:
        findings.fail("all checks can run", plugins.reason_of(error))
    return findings.found
