"""The target tenant: sign-in, Microsoft Graph, Exchange Online, and how patient the worker is with them."""

from matoolkit.worker.tenant.asking import Surroundings
from matoolkit.worker.tenant.opening import TenantAddresses, TenantClients, open_tenant
from matoolkit.worker.tenant.sign_in import Identity, SignInFailed
from matoolkit.worker.tenant.throttle import Patience

__all__ = ["Identity", "Patience", "SignInFailed", "Surroundings", "TenantAddresses", "TenantClients", "open_tenant"]
