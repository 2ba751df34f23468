import numpy as np
import pytest
from drawn import titles, words

import bqlib
from bqlib.figures import estimates, plot_against_n, plot_left_out
