"""Sessions: what is refused before Spark starts."""

import pytest

from elastic.errors import ExposedSecret
from elastic.spark.session import cluster_session, local_session


def test_the_secret_is_refused_in_the_configuration_that_the_jvm_is_started_with() -> None:
    with pytest.raises(ExposedSecret, match="ELASTIC_SECRET"):
        local_session(conf={"spark.elastic.secret": "a secret of this test"})
    with pytest.raises(ExposedSecret, match="ELASTIC_SECRET"):
        cluster_session("spark://master:7077", spark_elastic_secret="a secret of this test")  # noqa: S106
