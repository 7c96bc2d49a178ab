from . import array_file as array_file
from . import cache as cache
from . import cache_folder as cache_folder
from . import saved as saved
