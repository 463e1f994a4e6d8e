from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from evenflow.errors import ConfigError
from evenflow.partitioners import create
from evenflow.settings import (
    KafkaSettings,
    PartitionerSettings,
    Query,
    Settings,
    load_settings,
    save_settings,
)
from evenflow.settings.describe import describe_settings, settings_markdown
from evenflow.settings.durations import format_duration, parse_duration
from evenflow.settings.kafka import aiokafka_config, java_config, librdkafka_config, spark_options
from evenflow.settings.sections.input import parse_start

SASL = KafkaSettings(
    bootstrap_servers="a:1,b:2",
    security_protocol="SASL_SSL",
    sasl_mechanism="SCRAM-SHA-512",
    sasl_username="ann",
    sasl_password='p"w\\d',
    ssl_ca=Path("/ca.pem"),
)


def written(folder: Path, text: str) -> Path:
    file = folder / "evenflow.toml"
    file.write_text(text)
    return file


def test_the_file_wins_over_the_defaults(tmp_path: Path) -> None:
    settings = load_settings(written(tmp_path, '[query]\nwindow = "10s"\n'))
    assert settings.query.window == 10_000
    assert settings.query.slide_ms == 10_000
    assert settings.partitioner.workers == 8


def test_variables_win_over_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENFLOW_QUERY__WINDOW", "20s")
    settings = load_settings(written(tmp_path, '[query]\nname = "mine"\nwindow = "10s"\nslide = "5s"\n'))
    assert (settings.query.name, settings.query.window, settings.query.slide_ms) == ("mine", 20_000, 5_000)


def test_arguments_win_over_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENFLOW_PARTITIONER__WORKERS", "3")
    monkeypatch.setenv("EVENFLOW_PARTITIONER__SEED", "9")
    settings = load_settings(written(tmp_path, ""), partitioner={"workers": 5})
    assert (settings.partitioner.workers, settings.partitioner.seed) == (5, 9)


def test_the_bootstrap_servers_have_a_dotted_name_too(tmp_path: Path) -> None:
    for text in ('[kafka]\nbootstrap.servers = "k:1"\n', '[kafka]\n"bootstrap.servers" = "k:1"\n'):
        assert load_settings(written(tmp_path, text)).kafka.bootstrap_servers == "k:1"


def test_all_problems_are_listed_at_once(tmp_path: Path) -> None:
    text = '[query]\nwindow = "soon"\n[partitioner]\nseed = -1\ncolour = "red"\n[spark]\nwiring = "loose"\n'
    with pytest.raises(ConfigError) as caught:
        load_settings(written(tmp_path, text))
    for name in ("query.window", "partitioner.seed", "partitioner.colour", "spark.wiring"):
        assert name in caught.value.message


def test_a_file_that_was_named_must_exist(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no settings file"):
        load_settings(tmp_path / "none.toml")


def test_a_folder_in_place_of_the_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is a folder"):
        load_settings(tmp_path)


def test_broken_toml_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"evenflow\.toml is not valid TOML"):
        load_settings(written(tmp_path, "[query"))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[query]\nwindow = "10s"\nslide = "3s"', "multiple of the slide"),
        ("[partitioner]\nworkers = 4\nmax_workers = 2", "exceeds"),
        ('[input]\nformat = "csv"', "needs columns"),
        ('[input]\nformat = "text"', "@timestamp"),
        *(
            (
                f'[input]\nformat = "csv"\ncolumns = ["key"]\ndelimiter = "{text}"',
                "input.delimiter.*not one character",
            )
            for text in ("", "ab", "§", "\\u0100", '\\"', "\\n", "\\r", "\\u0000")
        ),
        ('[results]\nsink = "parquet"', "needs results.path"),
        (
            '[kafka]\nsecurity_protocol = "SASL_SSL"',
            "lacks sasl_mechanism and sasl_username and sasl_password",
        ),
        (
            '[kafka]\nsecurity_protocol = "SASL_SSL"\nsasl_mechanism = "PLAIN"\nsasl_username = "ann"',
            "(?m)SASL_SSL lacks sasl_password$",
        ),
        ('[kafka]\nsasl_username = "ann"', "security_protocol is not SASL"),
        ('[kafka]\nssl_key = "/k.pem"', "go together"),
        ('[query.aggregates]\nkey = "count"', "cannot name an aggregate"),
        (
            '[query.aggregates]\n_Tuples_of = "count"',
            "_Tuples_of cannot name an aggregate: names that begin with _tuples",
        ),
        ('[query.aggregates]\nWindow_End = "count"', "every result row has the field window_end"),
        ('[query.aggregates]\nN = "count"\nn = "sum(x)"', "'N' and 'n' cannot both name aggregates"),
        ('[query.aggregates]\n"" = "count"', "'' cannot name an aggregate"),
        ('[query.aggregates]\n"a\\u0000b" = "count"', "cannot name an aggregate: write"),
        (
            '[query]\nemit = "changes"\n[query.aggregates]\nGone = "count"',
            "Gone cannot name an aggregate: with emit",
        ),
        ('[query]\nemit = "top(2, n)"\n[query.aggregates]\nn = "count"\nRank = "count"', "Rank cannot name"),
        (
            '[query]\nlate = "update"',
            "for as long as allowed_lateness says, which is 0: set allowed_lateness",
        ),
        ('[query]\nlate = "update"\nallowed_lateness = "1d"\nwindow = "1s"', "has 86,400 slides"),
        (
            '[query]\nlate = "update"\nallowed_lateness = "1s"\nemit = "changes"',
            "does not go with emit = 'changes'",
        ),
        (
            '[query]\nlate = "update"\nallowed_lateness = "1s"\n[query.views.most]\nemit = "top(3, n)"\n'
            '[query.views.most.aggregates]\nn = "count"',
            r"does not go with views\.most\.emit = 'top\(3, n\)'",
        ),
        ('[query.types]\nkey = "int"', "column 'key' cannot be 'int'.*did you mean 'int64'"),
        ('[query]\nkey = "regoin"\n[query.columns]\nregion = "a + 1"', "or was it meant by 'regoin'"),
        ('[query]\nkey = "usr"\n[input]\nformat = "csv"\ncolumns = ["user", "time"]', "did you mean 'user'"),
        ("[query.aggregates]\nn = 3", "aggregates"),
    ],
)
def test_settings_that_do_not_fit_are_refused(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        load_settings(written(tmp_path, text))


def test_every_setting_has_a_description_and_says_what_none_means() -> None:
    settings = describe_settings()
    assert len(settings) > 50
    for setting in settings:
        assert len(setting.description) > 10, setting.name
        if setting.default == "none":
            assert "None:" in setting.description or "Needed with" in setting.description, setting.name


def test_every_setting_is_read_from_its_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    checked = 0
    for setting in describe_settings():
        if setting.kind.startswith(("integer", "duration", "`")):
            file = written(tmp_path, "")
            monkeypatch.setenv(setting.variable, "wrong")
            with pytest.raises(ConfigError) as caught:
                load_settings(file)
            monkeypatch.delenv(setting.variable)
            assert setting.name.lower() in caught.value.message
            checked += 1
    assert checked > 20


def test_a_table_in_a_variable_is_json(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EVENFLOW_KAFKA__EXTRAS__JAVA", '{"a.b": 1}')
    assert load_settings(written(tmp_path, "")).kafka.extras.java == {"a.b": 1}


@pytest.mark.parametrize(("name", "option"), [("evenflow", "weights"), ("cg", "capacities")])
def test_an_option_of_a_partitioner_may_be_a_list_of_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, option: str
) -> None:
    text = f'[partitioner]\nname = "{name}"\n[partitioner.options]\n{option} = [1, 2.5]\n'
    settings = load_settings(written(tmp_path, text))
    assert settings.partitioner.options == {option: [1, 2.5]}
    assert create(name, workers=2, **settings.partitioner.options).snapshot()
    copy = tmp_path / "copy.json"
    save_settings(settings, copy)
    assert load_settings(copy).partitioner.options == {option: [1, 2.5]}
    monkeypatch.setenv("EVENFLOW_PARTITIONER__OPTIONS", f'{{"{option}": [3, 4]}}')
    assert load_settings(written(tmp_path, text)).partitioner.options[option] == [3, 4]
    with pytest.raises(ConfigError, match=r"partitioner\.options"):
        load_settings(partitioner={"options": {option: ["fast"]}})


def test_options_behind_the_name_are_those_of_the_table_and_a_command_replaces_both(tmp_path: Path) -> None:
    text = '[partitioner]\nname = "own:Mine:turns=3"\n[control]\npolicy = "ds2:target=0.5"\n'
    settings = load_settings(written(tmp_path, text))
    assert (settings.partitioner.name, settings.partitioner.options) == ("own:Mine", {"turns": 3})
    assert (settings.control.policy, settings.control.options) == ("ds2", {"target": 0.5})
    over = load_settings(written(tmp_path, text), partitioner={"name": "pkg:d=4"})
    assert (over.partitioner.name, over.partitioner.options) == ("pkg", {"d": 4})


@pytest.mark.parametrize(("table", "field"), [("partitioner", "name"), ("control", "policy")])
@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "own:Mine:turns=3",
            r"'own:Mine:turns=3' has options behind its name \(turns\), and others .* \(d\)",
        ),
        ("own:Mine:turns", "'turns' is no option: write option=value"),
    ],
)
def test_options_in_two_places_or_in_no_form_are_refused(
    tmp_path: Path, table: str, field: str, name: str, words: str
) -> None:
    with pytest.raises(ConfigError, match=f"{table}: .*{words}"):
        load_settings(written(tmp_path, f'[{table}]\n{field} = "{name}"\noptions = {{ d = 2 }}\n'))


def test_the_settings_page_is_current() -> None:
    page = Path(__file__).parents[3] / "docs" / "settings.md"
    assert page.read_text() == settings_markdown(), "run `make docs`"


def test_the_fingerprint_changes_with_the_query_and_not_with_its_name_or_the_broker(tmp_path: Path) -> None:
    def of(text: str) -> str:
        return load_settings(
            written(tmp_path, f'{text}\n[input]\ntopic = "clicks"\npartitions = 4')
        ).fingerprint

    one = of("")
    assert of("[query]\nwindow = 5000") != one
    assert of('[query]\nname = "other"') == one
    assert of('[query]\nlate = "reject"') == one
    waits = of('[query]\nallowed_lateness = "1s"')
    assert of('[query]\nallowed_lateness = "1s"\nlate = "update"') != waits
    assert of('[kafka]\nbootstrap_servers = "k:1"') == one


def test_with_forwarding_the_seed_is_part_of_the_fingerprint(tmp_path: Path) -> None:
    def of(lines: str) -> str:
        text = f'[partitioner]\n{lines}\n[input]\ntopic = "clicks"\npartitions = 4'
        return load_settings(written(tmp_path, text)).fingerprint

    assert of("") == of("seed = 8") == of('forwarding = "off"')
    assert len({of(""), of('forwarding = "on"'), of('forwarding = "on"\nseed = 8')}) == 3


def test_changed_forwarding_is_named_and_the_seed_only_where_it_counts(tmp_path: Path) -> None:
    def settings(lines: str) -> Settings:
        text = f'[partitioner]\n{lines}\n[input]\ntopic = "clicks"\npartitions = 4'
        return load_settings(written(tmp_path, text))

    off, on, other = settings(""), settings('forwarding = "on"'), settings('forwarding = "on"\nseed = 8')
    assert on.changes_since(off.identity()) == ['partitioner.forwarding: "off" -> "on"']
    assert off.changes_since(on.identity()) == ['partitioner.forwarding: "on" -> "off"']
    assert other.changes_since(on.identity()) == ["partitioner.seed: 7 -> 8"]
    assert settings("seed = 8").changes_since(off.identity()) == []


def test_the_fingerprint_needs_the_number_of_input_partitions(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="number of input partitions is not known"):
        _ = load_settings(written(tmp_path, "")).fingerprint


def test_durations_go_there_and_back() -> None:
    for text, milliseconds in {
        "500ms": 500,
        "60s": 60_000,
        "5m": 300_000,
        "1.5s": 1500,
        "1d": 86_400_000,
    }.items():
        assert parse_duration(text) == milliseconds
        assert parse_duration(format_duration(milliseconds)) == milliseconds


@pytest.mark.parametrize("text", ["", "5", "-5s", "5 weeks", "0.5ms", True, -1, 1.5, None])
def test_what_is_no_duration_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match=r"duration|whole number"):
        parse_duration(text)


@pytest.fixture
def login(tmp_path: Path) -> KafkaSettings:
    """SASL over TLS, whose authority is in a file."""
    authority = tmp_path / "ca.pem"
    authority.write_text("the authority")
    return SASL.model_copy(update={"ssl_ca": authority})


def test_librdkafka_gets_its_own_names(login: KafkaSettings) -> None:
    config = librdkafka_config(login, group_id="g", error_cb=print, log_level=0)
    assert config["bootstrap.servers"] == "a:1,b:2"
    assert config["security.protocol"] == "SASL_SSL"
    assert (config["sasl.mechanism"], config["sasl.username"]) == ("SCRAM-SHA-512", "ann")
    assert config["sasl.password"] == 'p"w\\d'
    assert config["ssl.ca.location"] == str(login.ssl_ca)
    assert config["group.id"] == "g"
    assert config["error_cb"] is print
    assert config["log_level"] == 0


def test_java_gets_its_own_names_and_quoted_credentials(login: KafkaSettings) -> None:
    config = java_config(login)
    assert config["sasl.jaas.config"] == (
        "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="ann" password="p\\"w\\\\d";'
    )
    assert (config["ssl.truststore.type"], config["ssl.truststore.certificates"]) == ("PEM", "the authority")


def test_spark_options_are_the_java_names_with_a_prefix(login: KafkaSettings) -> None:
    assert spark_options(login) == {f"kafka.{name}": value for name, value in java_config(login).items()}


@pytest.mark.parametrize("config", [librdkafka_config, java_config])
def test_a_file_of_tls_that_is_not_there_is_named_with_its_setting(
    config: Callable[[KafkaSettings], object],
) -> None:
    with pytest.raises(ConfigError, match=r"kafka\.ssl_ca: /ca\.pem cannot be read: No such file") as refused:
        config(SASL)
    assert "secret" in (refused.value.hint or "")


def test_aiokafka_gets_a_list_of_servers_and_plain_credentials() -> None:
    config = aiokafka_config(SASL)
    assert config["bootstrap_servers"] == ["a:1", "b:2"]
    assert (config["sasl_plain_username"], config["sasl_plain_password"]) == ("ann", 'p"w\\d')


def test_raw_extras_win_and_reach_only_their_client() -> None:
    kafka = KafkaSettings.model_validate(
        {"extras": {"librdkafka": {"client.id": "raw"}, "java": {"enable.metrics.push": False}}}
    )
    assert librdkafka_config(kafka, client_id="g")["client.id"] == "raw"
    assert java_config(kafka)["enable.metrics.push"] == "false"
    assert "x" not in librdkafka_config(kafka)


def test_a_password_is_never_printed() -> None:
    assert 'p"w' not in repr(SASL)
    assert 'p"w' not in SASL.model_dump_json()


@pytest.mark.parametrize(
    "partitioner",
    [
        {"commit_interval": "10s"},
        {"linger": "10s"},
        {"linger": "60s", "commit_interval": 1},
        {"linger": "5s", "commit_interval": "6s"},
        {"linger": 500, "commit_interval": "9s"},
        {"transaction_timeout": "1s"},
    ],
)
def test_a_transaction_that_would_always_time_out_is_refused(partitioner: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=r"must not exceed transaction_timeout .* abort each before it"):
        load_settings(partitioner=partitioner)


def test_reduce_tasks_are_refused_in_the_split_wiring_which_has_no_place_for_them() -> None:
    with pytest.raises(ConfigError, match=r"needs spark\.wiring = 'fused': .* Leave spark\.reduce at 'hash'"):
        load_settings(spark={"wiring": "split", "reduce": "prompt"})
    assert load_settings(spark={"reduce": "prompt"}).spark.wiring == "fused"


@given(st.integers(1, 20_000), st.integers(1, 20_000), st.integers(1_000, 20_000))
def test_of_settings_that_are_accepted_each_transaction_ends_a_block_s_work_before_its_timeout(
    commit_interval: int, linger: int, timeout: int
) -> None:
    """As the data plane does it: while records are scarce each read takes a linger, and then it may be
    time to commit.
    """
    try:
        options = PartitionerSettings(
            commit_interval=commit_interval, linger=linger, transaction_timeout=timeout
        )
    except ValidationError:
        assert commit_interval + linger + 1_000 > timeout
        return
    reads = -(-options.commit_interval // options.linger)
    assert reads * options.linger + 1_000 <= options.transaction_timeout


@pytest.mark.parametrize(
    ("written_as", "canonical"),
    [
        ("earliest", "earliest"),
        ("2026-11-20T10:00:00Z", "2026-11-20T10:00:00.000Z"),
        ("2026-11-20T12:00:00+02:00", "2026-11-20T10:00:00.000Z"),
        ("2026-11-20", "2026-11-20T00:00:00.000Z"),
        (datetime(2026, 11, 20, 10), "2026-11-20T10:00:00.000Z"),
        (date(2026, 11, 20), "2026-11-20T00:00:00.000Z"),
    ],
)
def test_a_start_is_a_word_or_a_time_in_any_zone(written_as: object, canonical: str) -> None:
    assert parse_start(written_as) == canonical
    assert parse_start(canonical) == canonical


@pytest.mark.parametrize(
    "wrong", ["newest", "", 5, True, "0001-01-01T00:00:00+02:00", "9999-12-31T23:59:59-02:00", "1969-12-31"]
)
def test_what_is_no_start_is_refused(wrong: object) -> None:
    with pytest.raises(ValueError, match=r"start|1970"):
        parse_start(wrong)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[query]\nslid = "10s"', "query.slid: there is no such setting; did you mean slide?"),
        (
            "[kafka]\nreplication = 3",
            "kafka.replication: there is no such setting; did you mean replication_factor?",
        ),
        ("[querry]\nkey = 'k'", "querry: there is no such setting; did you mean query?"),
        ("[input]\nx = 1", "input.x: there is no such setting (there are: topic, start, format"),
    ],
)
def test_a_misspelt_setting_is_named_with_the_one_that_was_meant(
    tmp_path: Path, text: str, said: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        load_settings(written(tmp_path, text))
    assert said in refused.value.message


def test_a_micro_batch_takes_twice_the_frames_that_partitioners_can_make_meanwhile() -> None:
    query = {"name": "q"}
    assert load_settings(query=query).frames_per_batch == 400
    live = load_settings(
        query=query,
        partitioner={
            "workers": 2,
            "routed_partitions": 12,
            "instances": 4,
            "linger": 200,
            "commit_interval": 500,
        },
        spark={"batch_interval": 5_000},
    )
    assert live.frames_per_batch == 2 * (25 + 10) * 12 * 4
    assert load_settings(query=query, spark={"max_frames_per_batch": 7}).frames_per_batch == 7


@pytest.mark.parametrize(
    ("key", "why"),
    [
        (5, "5 is no key; write a column's name, '@key', or a list of names"),
        (["a", 5], "is no key; write"),
        ([], "a key has 1 to 8 columns, not 0"),
        ([f"c{number}" for number in range(9)], "a key has 1 to 8 columns, not 9"),
        (["a", "@key"], "'@key' cannot be a part of a key"),
        (["a", ""], "'' cannot be a part of a key"),
        (["a", "b", "a"], r"key = \['a', 'b', 'a'\] names a column twice"),
    ],
)
def test_a_key_of_columns_that_make_none_is_refused(key: Any, why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        Query(key=key)


def test_a_key_of_one_column_is_that_column_and_the_order_of_several_matters() -> None:
    assert Query(key=["a"]) == Query(key="a")
    assert Query(key=["a"]).canonical() == Query(key="a").canonical()
    assert Query(key=["a", "b"]).canonical() != Query(key=["b", "a"]).canonical()
    assert Query(key=["a", "b"]).key_columns == ("a", "b")


def test_a_part_of_a_key_cannot_be_a_decimal() -> None:
    with pytest.raises(ValidationError, match="key column 'b' cannot be decimal"):
        Query(key=["a", "b"], types={"b": "decimal(2)"})
