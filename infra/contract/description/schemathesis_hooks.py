"""What Schemathesis must know of the API beyond its description."""

from decimal import Decimal, InvalidOperation

import schemathesis


@schemathesis.hook
def filter_query(_context, query):
    """Leaves out queries whose `min_price` is above `max_price`.

    No schema can compare two parameters. The service refuses such a query with the code `inverted`, which the example
    of the 400 shows. Every other 400 to a query that fits the schemas is still a finding.
    """
    try:
        return Decimal(query["min_price"]) <= Decimal(query["max_price"])
    except (KeyError, TypeError, ValueError, InvalidOperation):
        return True
