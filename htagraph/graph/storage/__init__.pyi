from . import cache as cache
from . import saved as saved
