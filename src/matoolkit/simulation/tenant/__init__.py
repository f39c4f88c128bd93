"""A tenant to run against: sign-in, Graph and Exchange's commands over HTTPS on loopback, with state and faults.

Everything behind the network is plain calls and answers (`tenant.py`); `server.py` puts it behind an address.
"""

from matoolkit.simulation.tenant.calls import Api
from matoolkit.simulation.tenant.certificates import ClientCertificate, make_client_certificate
from matoolkit.simulation.tenant.entra.device_codes import Decision
from matoolkit.simulation.tenant.entra.identities import Application, ExposedApi, Person
from matoolkit.simulation.tenant.faults import FaultRule, TenantFault
from matoolkit.simulation.tenant.records import CUT, Recorded
from matoolkit.simulation.tenant.server import SimulatedTenant, TenantNotStarted
from matoolkit.simulation.tenant.tenant import DOMAINS, TENANT_ID, Tenant
from matoolkit.simulation.tenant.throttling import ThrottleMode

__all__ = [
    "CUT",
    "DOMAINS",
    "TENANT_ID",
    "Api",
    "Application",
    "ClientCertificate",
    "Decision",
    "ExposedApi",
    "FaultRule",
    "Person",
    "Recorded",
    "SimulatedTenant",
    "Tenant",
    "TenantFault",
    "TenantNotStarted",
    "ThrottleMode",
    "make_client_certificate",
]
