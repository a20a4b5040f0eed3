"""Runs ministack with corrections. cloud.py starts it with the Python that has ministack installed.

Each module corrects one part: `resources` what a stack makes, `parameters` what SAM makes of a template, `calls`
permissions and encryption, `owners` whose a resource is, `codedeploy` and `aliases` gradual deployments. Importing a
module applies its corrections.
"""

import aliases
import calls
import codedeploy
import owners
import parameters
import resources
from ministack import app

__all__ = ["aliases", "calls", "codedeploy", "owners", "parameters", "resources"]

app.main()
