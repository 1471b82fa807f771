"""The public names of every package, in full: a name that appears or disappears changes this list on purpose."""

from importlib import import_module

import pytest

PUBLIC_NAMES = {
    "elastic.experiments": ["Experiment", "ExperimentResult", "run_experiments"],
    "elastic.experiments.paper000": ["EXPERIMENTS", "ExperimentScale", "FULL", "Lab", "QUICK"],
    "elastic.experiments.paper001": ["EXPERIMENTS", "ExperimentScale", "FULL", "Lab", "QUICK"],
    "elastic.experiments.paper003": [
        *("EXPERIMENTS", "ExperimentScale", "FULL", "Lab", "QUICK", "generate_logs", "read_logs"),
    ],
    "elastic.experiments.paper002": ["EXPERIMENTS", "ExperimentScale", "FULL", "Lab", "QUICK"],
    "elastic.experiments.paper004": ["EXPERIMENTS", "ExperimentScale", "FULL", "Lab", "QUICK"],
    "elastic.operators": [
        *("Aggregate", "Context", "CountByKey", "DropDuplicates", "Enrich", "IntervalJoin", "KeyedColumns"),
        *("KeyedOperator", "Operator", "Side", "Stage", "State", "StatelessOperator", "Timer", "ToNext", "ToSelf"),
        *("ToSink", "TopK", "ValueState", "WindowJoin", "drop_duplicates_within_watermark", "partial"),
        *("session_window", "stateless", "to_schema", "window", "with_late_rows"),
    ],
    "elastic.operators.testing": [
        *("Crash", "InputBatch", "NotReplayable", "OperatorTester", "Rekey", "Scale"),
    ],
    "elastic.results": [
        *("BATCH", "BatchIndex", "DeltaSink", "Description", "ExpiredResults", "IcebergSink", "KafkaSink"),
        *("MemorySink", "NoSink", "ORIGIN"),
        *("ParquetSink", "ResultLog", "ResultRef", "SINKS", "Sink", "SinkWriter", "StageDescription"),
        *("StoreSink", "TASK", "UNIT", "choose_stage", "open_sink", "read_result_schemas"),
    ],
    "elastic.routing": [
        *("GROUPINGS", "Grouping", "Groupings", "HASH", "HOME", "HashGrouping", "KeyOrders", "KeyTable", "KeyTargets"),
        *("PartialGrouping", "Routing", "RowPlacer", "SPLITS", "ShuffleGrouping", "SplitRows", "TableGrouping"),
        *("UnitChooser", "check_key", "hash_key", "hash_keys", "hash_rows", "parse_grouping"),
        *("spark_hash_expression", "split", "to_tasks"),
    ],
    "elastic.routing.shuffle": [
        *("CostEstimates", "ExecutionSketch", "Forecast", "NO_FORECAST", "NodeLoads", "RowScheduler", "SCHEDULERS"),
        *("Scheduled", "SenderShare", "SketchShape", "measure_slowness", "pool"),
    ],
    "elastic.routing.shuffle.simulation": [
        *("FULL_KNOWLEDGE", "READINGS", "ROUND_ROBIN", "Reading", "SimulatedStream", "SimulationResult", "simulate"),
    ],
    "elastic.routing.splitting": [
        *("KeyEstimates", "KeyFrequencies", "PARTITIONERS", "Partitioner", "SpaceSaving", "Targets"),
        *("choose_targets", "choose_targets_with_heads", "create_sketch", "head_share", "split_pairs"),
        *("split_with_heads",),
    ],
    "elastic.spark.processors": ["ProcessorOperator", "ProcessorTester"],
    "mdp": [
        *("CheckpointLocation", "DecisionProcess", "DuplicatedTime", "GapInLog", "InvalidLog", "InvalidMatrix"),
        *("InvalidProjection", "InvalidRecipe", "InvalidTable", "MdpError", "MissingPackage", "NothingBalanced"),
        *("SingleState", "TransitionMatrix", "UnknownPartition", "ValueTable", "learn", "project"),
    ],
    "mdp.learning": [
        *("HourlyMatrices", "Log", "NodeCounts", "Recipe", "Scaling", "count_nodes", "draw_matrix", "format_matrix"),
        *("format_summary", "generate_tweet_volume", "learn", "learn_from_log", "learn_hourly"),
        *("learn_hourly_from_log", "load_learned", "load_matrix", "read_journal", "read_log", "save_matrix"),
    ],
    "migration": [
        *("AdditiveTerms", "AdditiveValue", "Assignment", "Copy", "Infeasible", "InvalidAssignment"),
        *("InvalidInput", "InvalidStandbys", "Standbys"),
        *("InvalidPlan", "InvalidSchedule", "InvalidWorkload", "KernelInfo", "KeyLoads", "KeyPlan", "KeysInfeasible"),
        *("MigrationError", "Move", "NodeLoad", "Ownership", "Plan", "STRATEGIES", "ScatteredAssignment"),
        *("SearchGuide", "TooManyEntries", "TooManyPartitions", "UnknownNode", "UnknownOption", "UnknownStrategy"),
        *("ValueDoesNotFit", "ValueFunction", "Workload", "apply_moves", "compute_moves", "kernel_info"),
        *("ownership_from_dict", "plan", "plan_keys", "plan_sequence"),
    ],
    "migration.keys": [
        *("DEFAULT_MOST_ENTRIES", "DEFAULT_THETA", "KEY_STRATEGIES", "KeyEntries", "KeyEntry", "KeyLoads", "KeyMove"),
        *("KeyMoves", "KeyPlan", "plan_keys", "KeyCopies", "KeyStandbys", "STANDBY_STRATEGIES", "hash_standbys"),
    ],
    "migration.keys.compact": [
        *("DEFAULT_R", "GroupedKeys", "KeyRecords", "RECORD_STRATEGIES", "RecordPlan", "decode_records", "discretise"),
        *("encode_records", "group_keys", "materialise", "merge_records", "plan_records"),
    ],
    "migration.schedule": [
        *("SCHEDULES", "Transfer", "TransferPhase", "schedule_by_count", "schedule_by_size"),
        *("schedule_mini_migrations", "schedule_moves"),
    ],
}


@pytest.mark.parametrize("package", PUBLIC_NAMES)
def test_the_public_names_of_a_package_are_these_and_all_of_them_exist(package: str) -> None:
    module = import_module(package)
    assert sorted(module.__all__) == sorted(PUBLIC_NAMES[package])
    assert all(hasattr(module, name) for name in module.__all__)
