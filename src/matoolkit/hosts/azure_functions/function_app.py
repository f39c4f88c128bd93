"""What the host of Azure Functions loads: the functions of the parts that `MATOOLKIT_PARTS` names."""

from matoolkit.hosts.azure_functions.functions import Functions
from matoolkit.hosts.environment import environment

app = Functions(environment()).app
