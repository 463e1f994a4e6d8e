"""A Spark job of your own on evenflow's results: each row joined with a table of what is known about its key.

    spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.4 \\
        examples/spark_join.py evenflow.toml names.csv joined

names.csv has a header line. Its first column is the key. `joined` becomes a folder of Parquet files.
"""

import argparse

from pyspark.sql import DataFrame, SparkSession

from evenflow.spark import results


def joined(spark: SparkSession, settings: str, table: str) -> DataFrame:
    names = spark.read.csv(table, header=True)
    names = names.withColumnRenamed(names.columns[0], "key")
    return results(spark, settings).join(names, "key", "left")


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    words.add_argument("settings", help="the query's evenflow.toml")
    words.add_argument("table", help="a CSV file")
    words.add_argument("folder", help="where the Parquet files go")
    options = words.parse_args()

    spark = (
        SparkSession.builder.config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "32")  # a row may be a whole frame
        .getOrCreate()
    )
    frame = joined(spark, options.settings, options.table)
    frame.write.mode("overwrite").parquet(options.folder)
    print(f"{spark.read.parquet(options.folder).count()} rows in {options.folder}")
    spark.stop()


if __name__ == "__main__":
    main()
