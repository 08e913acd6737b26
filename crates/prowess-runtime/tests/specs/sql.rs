//! The tool `execute_sql`, on SQLite, PostgreSQL and MariaDB.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use prowess_runtime::{Outcome, OutcomeStatus, Tool as _, tools::ExecuteSql};
use prowess_sql::{
    Access, Connections, Database, MySqlDatabase, PostgresDatabase, Privileges, SingleConnection,
    SqlLimits, SqliteDatabase, open,
};
use prowess_testing::tools::reached;
use serde_json::{Value as Json, json};
use sqlx::{
    AssertSqlSafe, Connection as _, Executor as _, MySqlConnection, MySqlPool, PgConnection,
    PgPool, SqliteConnection,
    mysql::MySqlPoolOptions,
    postgres::{PgListener, PgPoolOptions},
    sqlite::SqlitePoolOptions,
};
use tempfile::TempDir;
use tokio::sync::Mutex;

use crate::{
    databases::{MARIADB, POSTGRES},
    world::PATIENCE,
};

/// A database with a table `t` of three rows, for a user who owns nothing else.
struct Stage {
    name: &'static str,
    /// The URL, with a password if there is one.
    address: String,
    /// The URL for the owner of the server.
    owner: String,
    _folder: Option<TempDir>,
}

/// Returns every kind of database, each with its own table.
async fn stages() -> Vec<Stage> {
    let mut stages = vec![Stage::sqlite().await];
    if cfg!(feature = "external") {
        stages.extend([Stage::postgres().await, Stage::mariadb().await]);
    }
    stages
}

static COUNT: AtomicU32 = AtomicU32::new(0);

const TABLE: &str = "
    CREATE TABLE t (id INTEGER PRIMARY KEY, name VARCHAR(100));
    INSERT INTO t VALUES (1, 'one'), (2, 'two'), (3, NULL);
";

impl Stage {
    async fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let address = format!("sqlite:{}", folder.path().join("stage.db").display());
        let creating = format!("{address}?mode=rwc");
        let mut connection = SqliteConnection::connect(&creating).await.unwrap();
        sqlx::raw_sql(TABLE).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
        Self { name: "sqlite", owner: address.clone(), address, _folder: Some(folder) }
    }

    async fn postgres() -> Self {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let host = format!("127.0.0.1:{}", POSTGRES.port);
        let server = format!("postgres://postgres@{host}/postgres");
        let mut connection = patiently(|| PgConnection::connect(&server)).await;
        for sql in [
            format!("CREATE ROLE user_{number} LOGIN"),
            format!("CREATE DATABASE stage_{number} OWNER user_{number}"),
        ] {
            sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await.unwrap();
        }
        let address = format!("postgres://user_{number}:s3cret@{host}/stage_{number}");
        let owner = format!("postgres://postgres:s3cret@{host}/stage_{number}");
        let mut connection = PgConnection::connect(&address).await.unwrap();
        sqlx::raw_sql(TABLE).execute(&mut connection).await.unwrap();
        Self { name: "postgres", address, owner, _folder: None }
    }

    async fn mariadb() -> Self {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let host = format!("127.0.0.1:{}", MARIADB.port);
        let server = format!("mysql://root@{host}/mysql");
        let mut connection = patiently(|| MySqlConnection::connect(&server)).await;
        let sql = format!(
            "CREATE DATABASE stage_{number};
             CREATE USER user_{number}@127.0.0.1 IDENTIFIED BY 's3cret';
             GRANT ALL ON stage_{number}.* TO user_{number}@127.0.0.1;"
        );
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await.unwrap();
        let address = format!("mysql://user_{number}:s3cret@{host}/stage_{number}");
        let owner = format!("mysql://root@{host}/stage_{number}");
        let mut connection = MySqlConnection::connect(&address).await.unwrap();
        sqlx::raw_sql(TABLE).execute(&mut connection).await.unwrap();
        Self { name: "mariadb", address, owner, _folder: None }
    }

    fn tool(&self, access: Access) -> ExecuteSql {
        tool(open(&self.address, access, Privileges::Limited).unwrap(), access)
    }

    /// Executes a statement with read access.
    async fn read(&self, sql: &str) -> Outcome {
        call(&self.tool(Access::Read), sql, &[]).await
    }

    /// Executes a statement with write access.
    async fn write(&self, sql: &str) -> Outcome {
        call(&self.tool(Access::Write), sql, &[]).await
    }

    /// Returns the rows of a successful statement.
    async fn rows(&self, sql: &str) -> Json {
        let outcome = self.read(sql).await;
        assert!(outcome.is_ok(), "{}: {sql}: {outcome:?}", self.name);
        outcome.output.unwrap()["rows"].take()
    }

    /// Fails unless the table is unchanged, and the only one.
    async fn assert_unchanged(&self) {
        let rows = self.rows("SELECT id, name FROM t ORDER BY id").await;
        assert_eq!(rows, json!([[1, "one"], [2, "two"], [3, null]]), "{}", self.name);
        let tables = match self.name {
            "sqlite" => "SELECT name FROM sqlite_master WHERE type = 'table'",
            "postgres" => "SELECT tablename FROM pg_tables WHERE schemaname = 'public'",
            _ => "SELECT table_name FROM information_schema.tables WHERE table_schema = database()",
        };
        assert_eq!(self.rows(tables).await, json!([["t"]]), "{}", self.name);
    }
}

fn tool(database: Arc<dyn Database>, access: Access) -> ExecuteSql {
    ExecuteSql { database: Some(database), access, limits: SqlLimits::default() }
}

async fn call(tool: &ExecuteSql, sql: &str, params: &[Json]) -> Outcome {
    tool.call(json!({"sql": sql, "params": params})).await
}

/// Connects to a server that may still be starting.
async fn patiently<C, F: Future<Output = sqlx::Result<C>>>(connect: impl Fn() -> F) -> C {
    let start = Instant::now();
    loop {
        match connect().await {
            Ok(connection) => return connection,
            Err(error) if start.elapsed() > Duration::from_secs(60) => panic!("{error}"),
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

/// The condition of a PostgreSQL process that sleeps.
const PG_SLEEPS: &str = "state = 'active' AND wait_event = 'PgSleep'";

/// Waits until a server counts this many.
async fn until_counted(wanted: i64, mut count: impl AsyncFnMut() -> i64) {
    let start = Instant::now();
    while count().await < wanted {
        assert!(start.elapsed() < PATIENCE, "there are never {wanted}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Returns a tool that stops after this many milliseconds.
fn brief(tool: ExecuteSql, milliseconds: u64) -> ExecuteSql {
    let timeout = Duration::from_millis(milliseconds);
    ExecuteSql { limits: SqlLimits { timeout, ..tool.limits }, ..tool }
}

fn statuses(outcome: &Outcome) -> (OutcomeStatus, &str) {
    (outcome.status, outcome.message.as_deref().unwrap_or_default())
}

mod a_statement_is_run_as_the_database_takes_it {
    use super::*;

    #[tokio::test]
    #[cfg_attr(not(feature = "external"), ignore = "needs PostgreSQL and MariaDB")]
    async fn q_24_a_pool_that_the_host_has_is_asked() {
        let memory = SqlitePoolOptions::new().max_connections(1);
        let memory = memory.connect("sqlite::memory:").await.unwrap();
        let postgres = PgPool::connect(&Stage::postgres().await.address).await.unwrap();
        let mysql = MySqlPool::connect(&Stage::mariadb().await.address).await.unwrap();
        let sql = "CREATE TABLE host (a INT)";
        memory.execute(sql).await.unwrap();
        postgres.execute(sql).await.unwrap();
        mysql.execute(sql).await.unwrap();
        let privileges = Privileges::Limited;
        let databases: [Arc<dyn Database>; 3] = [
            Arc::new(SqliteDatabase { connections: Connections::Pool(memory.clone()) }),
            Arc::new(PostgresDatabase {
                connections: Connections::Pool(postgres.clone()),
                privileges,
            }),
            Arc::new(MySqlDatabase { connections: Connections::Pool(mysql.clone()), privileges }),
        ];
        let tools = databases.map(|it| tool(it, Access::Read));
        for rows in 1..=2 {
            let sql = "INSERT INTO host VALUES (1)";
            memory.execute(sql).await.unwrap();
            postgres.execute(sql).await.unwrap();
            mysql.execute(sql).await.unwrap();
            for tool in &tools {
                let outcome = call(tool, "SELECT count(*) FROM host", &[]).await;
                assert_eq!(outcome.output.unwrap()["rows"], json!([[rows]]), "{tool:?}");
                let refused = call(tool, "DELETE FROM host", &[]).await;
                assert_eq!(refused.status, OutcomeStatus::Refused, "{tool:?}");
            }
        }
        // The restrictions of a statement do not apply to the host.
        memory.execute("CREATE VIRTUAL TABLE words USING fts5(a)").await.unwrap();
        memory.execute("ATTACH ':memory:' AS other").await.unwrap();
        memory.execute("SELECT length(zeroblob(10000000))").await.unwrap();
    }

    #[tokio::test]
    async fn q_24_an_address_is_enough() {
        for stage in stages().await {
            assert_eq!(stage.rows("SELECT name FROM t WHERE id = 2").await, json!([["two"]]));
        }
        let missing = open("sqlite:/nowhere/at/all.db", Access::Write, Privileges::Limited);
        let tool = tool(missing.unwrap(), Access::Write);
        assert_eq!(
            statuses(&call(&tool, "SELECT 1", &[]).await),
            (OutcomeStatus::Failed, "cannot reach the database: unable to open database file")
        );
        let unknown = open("oracle://somewhere", Access::Read, Privileges::Limited).unwrap_err();
        assert!(unknown.to_string().contains("`sqlite:`, `postgres:` or `mysql:`"), "{unknown}");
    }

    #[tokio::test]
    #[cfg_attr(not(feature = "external"), ignore = "needs PostgreSQL and MariaDB")]
    async fn parameters_are_bound() {
        for stage in stages().await {
            let tool = stage.tool(Access::Read);
            let mark = if stage.name == "postgres" { ["$1", "$2"] } else { ["?", "?"] };
            let named = format!("SELECT id FROM t WHERE name = {}", mark[0]);
            for (given, rows) in [
                ("two", json!([[2]])),
                ("x' OR '1'='1", json!([])),
                ("'; DROP TABLE t; --", json!([])),
            ] {
                let outcome = call(&tool, &named, &[json!(given)]).await;
                assert_eq!(outcome.output.unwrap()["rows"], rows, "{}: {given}", stage.name);
            }
            let sql = format!("SELECT id FROM t WHERE id = {} OR id = {}", mark[0], mark[1]);
            let outcome = call(&tool, &sql, &[json!(3), json!(null)]).await;
            assert_eq!(outcome.output.unwrap()["rows"], json!([[3]]), "{}", stage.name);
            stage.assert_unchanged().await;
        }
        // PostgreSQL is strict about types, so each placeholder has one.
        let stage = Stage::postgres().await;
        let sql = "SELECT $1 + 1, $2::date + 1, $3::jsonb ->> 'a', 3 = ANY($4::int[]), \
                   $5::numeric, $6::bool, $7::text[], $8::timestamptz, upper($9)";
        let params = [
            json!(41),
            json!("2024-02-28"),
            json!({"a": "b"}),
            json!([1, 3]),
            json!("12345678901234567890.12"),
            json!(true),
            json!(["a \"quoted\\\" one", null]),
            json!("2024-01-02T03:04:05Z"),
            json!("x"),
        ];
        let outcome = call(&stage.tool(Access::Read), sql, &params).await;
        let wanted = json!([[
            42,
            "2024-02-29",
            "b",
            true,
            "12345678901234567890.12",
            true,
            ["a \"quoted\\\" one", null],
            "2024-01-02 03:04:05+00",
            "X"
        ]]);
        assert!(outcome.is_ok(), "{outcome:?}");
        assert_eq!(outcome.output.unwrap()["rows"], wanted);
        let outcome = call(&stage.tool(Access::Read), "SELECT $1::int", &[json!("x")]).await;
        assert_eq!(
            statuses(&outcome),
            (OutcomeStatus::Failed, "invalid input syntax for type integer: \"x\"")
        );
    }

    #[tokio::test]
    async fn parameters_that_are_too_many_or_too_few_are_told() {
        for stage in stages().await {
            let tool = stage.tool(Access::Read);
            let mark = if stage.name == "postgres" { "$1" } else { "?" };
            let sql = format!("SELECT id FROM t WHERE id = {mark}");
            for (params, given) in [(&[][..], 0), (&[json!(1), json!(2)], 2)] {
                assert_eq!(
                    statuses(&call(&tool, &sql, params).await),
                    (OutcomeStatus::Invalid, &*format!("expected 1 parameters, got {given}")),
                    "{}",
                    stage.name
                );
            }
        }
    }

    #[tokio::test]
    #[cfg_attr(not(feature = "external"), ignore = "needs PostgreSQL and MariaDB")]
    async fn every_value_comes_out_as_it_is() {
        let sqlite = Stage::sqlite().await;
        let sql = "SELECT 9223372036854775807, 1.5, 'ä', x'00ff', NULL, '2024-01-02', CAST(x'ff' AS TEXT)";
        let wanted = json!([[i64::MAX, 1.5, "ä", "AP8=", null, "2024-01-02", "\u{FFFD}"]]);
        assert_eq!(sqlite.rows(sql).await, wanted);
        let endless = json!([["Infinity", "-Infinity"]]);
        assert_eq!(sqlite.rows("SELECT 9e999, -9e999").await, endless);

        let postgres = Stage::postgres().await;
        let sql = r#"SELECT true, 1::int2, 9223372036854775807, 1.1::float4, 1e300::float8, 'NaN'::float8,
            1.10::numeric(10, 2), 'ä', '\x00ff'::bytea, NULL,
            date '2024-01-02', time '03:04:05.6', timestamp '2024-01-02 03:04:05.678901',
            timestamptz '2024-01-02 03:04:05+01', interval '1 day 02:00',
            uuid '00000000-0000-0000-0000-00000000002a', inet '10.0.0.1/8',
            '{"a": [1, null]}'::jsonb, '{"b": 1.0}'::json, ARRAY[[1, NULL], [3, 4]], ARRAY[1.10, 2],
            ARRAY['a,"b', NULL], int4range(1, 5), ROW(1, 'x'), '(1,2)'::point, B'101', 'x'::"char""#;
        let wanted = json!([[
            true, 1, i64::MAX, 1.1, 1e300, "NaN",
            "1.10", "ä", "AP8=", null,
            "2024-01-02", "03:04:05.6", "2024-01-02 03:04:05.678901",
            "2024-01-02 02:04:05+00", "P1DT2H",
            "00000000-0000-0000-0000-00000000002a", "10.0.0.1/8",
            {"a": [1, null]}, {"b": 1.0}, [[1, null], [3, 4]], ["1.10", "2"],
            ["a,\"b", null], "[1,5)", "(1,x)", "(1,2)", "101", "x"
        ]]);
        assert_eq!(postgres.rows(sql).await, wanted);

        let mariadb = Stage::mariadb().await;
        let table = "CREATE TABLE types (a TINYINT, b BIGINT UNSIGNED, c DECIMAL(30, 2), d FLOAT, e DOUBLE,
            f VARCHAR(10), g VARBINARY(10), h DATE, i DATETIME(6), j TIME, k YEAR, l JSON, m ENUM('x', 'y'),
            n SET('x', 'y'), o BIT(3), p TEXT COLLATE utf8mb4_bin, q BLOB, r TIMESTAMP NULL, s UUID, u DATETIME)";
        let row = "INSERT INTO types VALUES (-1, 18446744073709551615, 1.10, 1.1, 1e300, 'ä', x'00ff',
            '2024-01-02', '2024-01-02 03:04:05.678901', '-26:00:01', 2024, '{\"a\": 1}', 'y', 'x,y', b'101',
            'ö', x'00ff', '2024-01-02 03:04:05', '00000000-0000-0000-0000-00000000002a', '2024-01-02')";
        assert!(mariadb.write(table).await.is_ok());
        let written = mariadb.write(row).await;
        assert!(written.is_ok(), "{written:?}");
        let wanted = json!([[
            -1,
            u64::MAX,
            "1.10",
            1.1,
            1e300,
            "ä",
            "AP8=",
            "2024-01-02",
            "2024-01-02 03:04:05.678901",
            "-26:00:01",
            2024,
            "{\"a\": 1}",
            "y",
            "x,y",
            5,
            "ö",
            "AP8=",
            "2024-01-02 03:04:05",
            "00000000-0000-0000-0000-00000000002a",
            "2024-01-02 00:00:00"
        ]]);
        assert_eq!(mariadb.rows("SELECT * FROM types").await, wanted);
    }

    #[tokio::test]
    async fn columns_keep_their_order_also_where_two_have_one_name() {
        for stage in stages().await {
            let outcome = stage.read("SELECT name AS x, id AS x FROM t WHERE id = 1").await;
            let output = outcome.output.unwrap();
            assert_eq!(output["rows"], json!([["one", 1]]), "{}", stage.name);
            let empty = stage.read("SELECT id AS x, name AS y FROM t WHERE id = 0").await;
            let empty = empty.output.unwrap();
            let names: Vec<&Json> =
                empty["columns"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
            assert_eq!(names, ["x", "y"], "{}", stage.name);
            assert_eq!((&empty["rows"], &empty["row_count"]), (&json!([]), &json!(0)));
        }
    }

    #[tokio::test]
    async fn a_fault_is_told_in_the_words_of_the_database() {
        for stage in stages().await {
            let outcome = stage.read("SELECT nam FROM t").await;
            let wanted = match stage.name {
                "sqlite" => "no such column: nam",
                "postgres" => {
                    "column \"nam\" does not exist (Perhaps you meant to reference the column \"t.name\".)"
                }
                _ => "Unknown column 'nam' in 'SELECT'",
            };
            assert_eq!(statuses(&outcome), (OutcomeStatus::Failed, wanted));
            let long = format!("SELECT '{}'", "x".repeat(100_000));
            for sql in [" -- nothing", "SELECT 1\0", "SELECT 1\0; DROP TABLE t", "\0", &long] {
                let outcome = stage.read(sql).await;
                assert!(
                    matches!(outcome.status, OutcomeStatus::Failed | OutcomeStatus::Refused),
                    "{outcome:?}"
                );
            }
            for sql in ["", " ;\n"] {
                let outcome = stage.read(sql).await;
                assert_eq!(statuses(&outcome), (OutcomeStatus::Invalid, "there is no statement"));
            }
            stage.assert_unchanged().await;
        }
    }
}

mod one_connection_of_the_host_is_left_as_it_was {
    use super::*;

    /// One connection of a host, to a database with the table of a stage.
    enum Host {
        Sqlite(SingleConnection<SqliteConnection>),
        Postgres(SingleConnection<PgConnection>),
        MariaDb(SingleConnection<MySqlConnection>),
    }

    async fn hosts() -> [Host; 3] {
        let mut memory = SqliteConnection::connect("sqlite::memory:").await.unwrap();
        sqlx::raw_sql(TABLE).execute(&mut memory).await.unwrap();
        let (postgres, mariadb) = (Stage::postgres().await, Stage::mariadb().await);
        [
            Host::Sqlite(lone(memory)),
            Host::Postgres(lone(PgConnection::connect(&postgres.address).await.unwrap())),
            Host::MariaDb(lone(MySqlConnection::connect(&mariadb.address).await.unwrap())),
        ]
    }

    fn lone<C>(connection: C) -> SingleConnection<C> {
        Arc::new(Mutex::new(Some(connection)))
    }

    impl Host {
        fn tool(&self, access: Access) -> ExecuteSql {
            let privileges = Privileges::Limited;
            let database: Arc<dyn Database> = match self {
                Self::Sqlite(lone) => {
                    Arc::new(SqliteDatabase { connections: Connections::Single(lone.clone()) })
                }
                Self::Postgres(lone) => Arc::new(PostgresDatabase {
                    connections: Connections::Single(lone.clone()),
                    privileges,
                }),
                Self::MariaDb(lone) => Arc::new(MySqlDatabase {
                    connections: Connections::Single(lone.clone()),
                    privileges,
                }),
            };
            tool(database, access)
        }

        /// Returns whether a statement has the connection.
        fn is_taken(&self) -> bool {
            match self {
                Self::Sqlite(lone) => lone.try_lock().is_err(),
                Self::Postgres(lone) => lone.try_lock().is_err(),
                Self::MariaDb(lone) => lone.try_lock().is_err(),
            }
        }

        async fn read(&self, sql: &str) -> Outcome {
            call(&self.tool(Access::Read), sql, &[]).await
        }

        async fn write(&self, sql: &str) -> Outcome {
            call(&self.tool(Access::Write), sql, &[]).await
        }

        /// Executes a statement as the host itself.
        async fn run(&self, sql: &'static str) -> sqlx::Result<()> {
            let sql = sqlx::raw_sql(sql);
            match self {
                Self::Sqlite(lone) => {
                    sql.execute(lone.lock().await.as_mut().unwrap()).await.map(drop)
                }
                Self::Postgres(lone) => {
                    sql.execute(lone.lock().await.as_mut().unwrap()).await.map(drop)
                }
                Self::MariaDb(lone) => {
                    sql.execute(lone.lock().await.as_mut().unwrap()).await.map(drop)
                }
            }
        }

        /// Returns the settings of the connection, as one text.
        async fn settings(&self) -> String {
            match self {
                Self::Sqlite(lone) => {
                    let sql = "SELECT CAST(query_only AS TEXT) FROM pragma_query_only";
                    let mut place = lone.lock().await;
                    sqlx::query_scalar(sql).fetch_one(place.as_mut().unwrap()).await.unwrap()
                }
                Self::Postgres(lone) => {
                    let sql = "SELECT string_agg(name || '=' || setting, ',' ORDER BY name) \
                               || (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' \
                                   AND pid = pg_backend_pid()) FROM pg_settings";
                    let mut place = lone.lock().await;
                    sqlx::query_scalar(sql).fetch_one(place.as_mut().unwrap()).await.unwrap()
                }
                Self::MariaDb(lone) => {
                    let sql = "SELECT GROUP_CONCAT(variable_name, '=', variable_value ORDER BY 1) \
                               FROM information_schema.session_variables WHERE variable_name NOT IN \
                               ('TIMESTAMP', 'LAST_GTID', 'RAND_SEED1', 'RAND_SEED2', 'PSEUDO_THREAD_ID')";
                    let mut place = lone.lock().await;
                    let connection = place.as_mut().unwrap();
                    sqlx::query_scalar(sql).fetch_one(connection).await.unwrap()
                }
            }
        }

        fn endless(&self) -> &'static str {
            match self {
                Self::Sqlite(_) => {
                    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r"
                }
                Self::Postgres(_) => "SELECT pg_sleep(3600)",
                Self::MariaDb(_) => {
                    "SELECT COUNT(*) FROM seq_1_to_1000000000 a, seq_1_to_1000000000 b"
                }
            }
        }
    }

    fn rows(outcome: Outcome) -> Json {
        assert!(outcome.is_ok(), "{outcome:?}");
        outcome.output.unwrap()["rows"].take()
    }

    #[tokio::test]
    #[cfg_attr(not(feature = "external"), ignore = "needs PostgreSQL and MariaDB")]
    async fn q_24_one_connection_that_the_host_has_is_asked() {
        for host in hosts().await {
            host.run("CREATE TEMPORARY TABLE own (a INT)").await.unwrap();
            if let Host::MariaDb(_) = host {
                host.run("SET SESSION max_statement_time = 77, sql_select_limit = 88")
                    .await
                    .unwrap();
            }
            if let Host::Postgres(_) = host {
                host.run("SET statement_timeout = '77s'; SELECT pg_advisory_lock(1)")
                    .await
                    .unwrap();
            }
            let before = host.settings().await;
            for count in 1..=2 {
                host.run("INSERT INTO own VALUES (1)").await.unwrap();
                assert_eq!(rows(host.read("SELECT count(*) FROM own").await), json!([[count]]));
                assert_eq!(host.read("DELETE FROM t").await.status, OutcomeStatus::Refused);
                assert_eq!(host.read("SELECT nothing FROM t").await.status, OutcomeStatus::Failed);
                let changed = host.write("UPDATE t SET name = 'new' WHERE id < 3").await;
                assert_eq!(changed.output.unwrap()["rows_affected"], 2);
                let failed = host.write("INSERT INTO t VALUES (9, 'nine'), (1, 'again')").await;
                assert_eq!(failed.status, OutcomeStatus::Failed);
                assert_eq!(host.settings().await, before);
            }
            let all = "SELECT * FROM t ORDER BY id";
            assert_eq!(rows(host.read(all).await), json!([[1, "new"], [2, "new"], [3, null]]));
            host.run("ALTER TABLE t ADD COLUMN more INT").await.unwrap();
            let all = rows(host.read(all).await);
            assert_eq!(all, json!([[1, "new", null], [2, "new", null], [3, null, null]]));
        }
        // The prepared statements of the host are for the host alone.
        let [_, postgres, _] = hosts().await;
        postgres.run("PREPARE p AS SELECT pg_cancel_backend(0)").await.unwrap();
        for sql in ["EXECUTE p", "EXPLAIN ANALYZE EXECUTE p"] {
            assert_eq!(postgres.read(sql).await.status, OutcomeStatus::Refused);
        }
        // A superuser can read on it as well, and nothing else.
        let owner = PgConnection::connect(&Stage::postgres().await.owner).await.unwrap();
        let owner = Host::Postgres(lone(owner));
        for (sql, answer) in [("SELECT 1", json!([[1]])), ("SELECT 'a', 'b'", json!([["a", "b"]]))]
        {
            assert_eq!(rows(owner.read(sql).await), answer);
            assert_eq!(owner.read("SELECT pg_reload_conf()").await.status, OutcomeStatus::Refused);
        }
        owner.run("CREATE TABLE after (a INT)").await.unwrap();
    }

    #[tokio::test]
    #[cfg_attr(not(feature = "external"), ignore = "needs PostgreSQL and MariaDB")]
    async fn statements_take_turns_and_waiting_is_part_of_their_time() {
        for host in hosts().await {
            let mut tasks = tokio::task::JoinSet::new();
            for _ in 0..20 {
                let tool = host.tool(Access::Read);
                tasks.spawn(async move { call(&tool, "SELECT count(*) FROM t", &[]).await });
            }
            for outcome in tasks.join_all().await {
                assert_eq!(rows(outcome), json!([[3]]));
            }
            let asked = brief(host.tool(Access::Read), 300);
            let first = brief(host.tool(Access::Read), 3000);
            let (first, second) = tokio::join!(call(&first, host.endless(), &[]), async {
                reached("the first has the connection", || host.is_taken()).await;
                call(&asked, "SELECT 1", &[]).await
            });
            assert_eq!(
                statuses(&first),
                (OutcomeStatus::TimedOut, "the statement timed out after 3000 ms")
            );
            assert_eq!(
                statuses(&second),
                (OutcomeStatus::TimedOut, "the statement timed out after 300 ms")
            );
            assert_eq!(rows(host.read("SELECT 1").await), json!([[1]]));
        }
    }

    #[tokio::test]
    #[cfg_attr(not(feature = "external"), ignore = "needs PostgreSQL and MariaDB")]
    async fn a_statement_that_is_stopped_leaves_nothing_running_or_open() {
        for host in hosts().await {
            let before = host.settings().await;
            let stopped = call(&brief(host.tool(Access::Read), 200), host.endless(), &[]).await;
            assert_eq!(stopped.status, OutcomeStatus::TimedOut);
            host.run("INSERT INTO t VALUES (4, 'four')").await.unwrap();
            let tool = brief(host.tool(Access::Write), 3000);
            let dropped = call(&tool, host.endless(), &[]);
            // It gets into the middle of the statement.
            assert!(tokio::time::timeout(Duration::from_millis(200), dropped).await.is_err());
            // The next one waits until its time is over.
            host.run("INSERT INTO t VALUES (5, 'five')").await.unwrap();
            assert_eq!(rows(host.read("SELECT count(*) FROM t").await), json!([[5]]));
            assert_eq!(host.settings().await, before);
        }
        let (postgres, mariadb) = (Stage::postgres().await, Stage::mariadb().await);
        let mut other = PgConnection::connect(&postgres.address).await.unwrap();
        sqlx::raw_sql("BEGIN; LOCK TABLE t").execute(&mut other).await.unwrap();
        let mut another = MySqlConnection::connect(&mariadb.address).await.unwrap();
        sqlx::raw_sql("LOCK TABLES t WRITE").execute(&mut another).await.unwrap();
        for host in [
            Host::Postgres(lone(PgConnection::connect(&postgres.address).await.unwrap())),
            Host::MariaDb(lone(MySqlConnection::connect(&mariadb.address).await.unwrap())),
        ] {
            let before = host.settings().await;
            for access in [Access::Read, Access::Write] {
                let tool = brief(host.tool(access), 300);
                let outcome = call(&tool, "SELECT id FROM t", &[]).await;
                assert_eq!(outcome.status, OutcomeStatus::TimedOut, "{outcome:?}");
                assert_eq!(host.settings().await, before);
            }
        }
    }

    #[tokio::test]
    #[cfg_attr(not(feature = "external"), ignore = "needs PostgreSQL and MariaDB")]
    async fn a_transaction_of_the_host_is_not_touched() {
        for host in hosts().await {
            host.run("BEGIN").await.unwrap();
            host.run("INSERT INTO t VALUES (4, 'four')").await.unwrap();
            for outcome in [host.read("SELECT 1").await, host.write("DELETE FROM t").await] {
                assert_eq!(
                    statuses(&outcome),
                    (OutcomeStatus::Refused, "the connection is already in a transaction")
                );
            }
            if let Host::Postgres(_) = host {
                host.run("SAVEPOINT a").await.unwrap();
                host.run("SELECT 1/0").await.unwrap_err();
                assert_eq!(host.read("SELECT 1").await.status, OutcomeStatus::Refused);
                host.run("ROLLBACK TO a").await.unwrap();
            }
            host.run("INSERT INTO t VALUES (5, 'five')").await.unwrap();
            host.run("ROLLBACK").await.unwrap();
            assert_eq!(rows(host.read("SELECT count(*) FROM t").await), json!([[3]]));
        }
    }

    #[tokio::test]
    #[cfg_attr(not(feature = "external"), ignore = "needs PostgreSQL and MariaDB")]
    async fn what_would_stay_on_it_is_refused() {
        for host in hosts().await {
            let before = host.settings().await;
            let statements: &[&str] = match host {
                Host::Sqlite(_) => &["PRAGMA foreign_keys = 0", "ATTACH ':memory:' AS x", "BEGIN"],
                Host::Postgres(_) => &[
                    "SELECT pg_advisory_lock(42)",
                    "SELECT pg_catalog.pg_try_advisory_lock_shared(42)",
                    "SELECT query_to_xml('SELECT pg_advisory' || '_lock(42)', true, true, '')",
                    "SELECT set_config('work_mem', '1MB', false)",
                    "SET work_mem = '1MB'",
                    "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
                    "RESET ALL",
                    "DISCARD ALL",
                    "LISTEN x",
                    "BEGIN",
                    "COMMIT",
                    "CREATE TABLE x (a INT)",
                ],
                Host::MariaDb(_) => &[
                    "SELECT GET_LOCK('x', 0)",
                    "SELECT @kept := 7",
                    "SELECT id INTO @kept FROM t LIMIT 1",
                    "SET @kept = 7",
                    "SET SESSION TRANSACTION READ ONLY",
                    "SET autocommit = 0",
                    "USE information_schema",
                    "BEGIN",
                    "COMMIT",
                    "LOCK TABLES t READ",
                    "CREATE TABLE x (a INT)",
                ],
            };
            for sql in statements {
                for outcome in [host.read(sql).await, host.write(sql).await] {
                    assert!(
                        matches!(outcome.status, OutcomeStatus::Refused | OutcomeStatus::Failed),
                        "{sql}: {outcome:?}"
                    );
                    assert_eq!(host.settings().await, before, "{sql}");
                    host.run("UPDATE t SET name = 'x'").await.unwrap();
                }
            }
        }
    }

    #[tokio::test]
    #[cfg_attr(not(feature = "external"), ignore = "needs PostgreSQL and MariaDB")]
    async fn a_connection_that_cannot_be_cleared_is_given_up() {
        let [_, postgres, mariadb] = hosts().await;
        let (Host::Postgres(pg), Host::MariaDb(my)) = (&postgres, &mariadb) else { unreachable!() };
        let id = sqlx::query_scalar("SELECT pg_backend_pid()");
        let id: i32 = id.fetch_one(pg.lock().await.as_mut().unwrap()).await.unwrap();
        let server = format!("postgres://postgres@127.0.0.1:{}/postgres", POSTGRES.port);
        let mut owner = PgConnection::connect(&server).await.unwrap();
        let (outcome, ()) = tokio::join!(postgres.read("SELECT pg_sleep(60)"), async {
            let sleeps =
                format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {id} AND {PG_SLEEPS}");
            until_counted(1, async || {
                sqlx::query_scalar(AssertSqlSafe(&*sleeps)).fetch_one(&mut owner).await.unwrap()
            })
            .await;
            let kill = sqlx::query("SELECT pg_terminate_backend($1)").bind(id);
            kill.execute(&mut owner).await.unwrap();
        });
        assert_eq!(outcome.status, OutcomeStatus::Failed);

        let id = sqlx::query_scalar("SELECT CONNECTION_ID()");
        let id: u64 = id.fetch_one(my.lock().await.as_mut().unwrap()).await.unwrap();
        let server = format!("mysql://root@127.0.0.1:{}/mysql", MARIADB.port);
        let mut owner = MySqlConnection::connect(&server).await.unwrap();
        let (outcome, ()) = tokio::join!(mariadb.read(mariadb.endless()), async {
            let runs = format!(
                "SELECT COUNT(*) FROM information_schema.processlist WHERE id = {id} \
                 AND command IN ('Query', 'Execute') AND info LIKE 'SELECT COUNT(*) FROM seq%'"
            );
            until_counted(1, async || {
                sqlx::query_scalar(AssertSqlSafe(&*runs)).fetch_one(&mut owner).await.unwrap()
            })
            .await;
            let kill = sqlx::raw_sql(AssertSqlSafe(format!("KILL {id}")));
            kill.execute(&mut owner).await.unwrap();
        });
        assert_eq!(outcome.status, OutcomeStatus::Failed);

        for host in [&postgres, &mariadb] {
            let message =
                "the connection was closed, because it could not be restored after a statement";
            assert_eq!(statuses(&host.read("SELECT 1").await), (OutcomeStatus::Failed, message));
        }
        assert!(pg.lock().await.is_none() && my.lock().await.is_none());
    }
}

mod a_statement_that_only_reads_is_held_to_it_by_the_database {
    use super::*;

    #[tokio::test]
    async fn sql_002_sql_003_nothing_that_writes_gets_through_however_it_is_written() {
        const ALL: &[&str] = &[
            "INSERT INTO t VALUES (4, 'four')",
            "UPDATE t SET name = 'x'",
            "DELETE FROM t",
            "DROP TABLE t",
            "CREATE TABLE x (a INT)",
            "ALTER TABLE t ADD COLUMN x INT",
            "CREATE INDEX x ON t (name)",
            "CREATE VIEW x AS SELECT 1",
            "/* x */ DROP TABLE t",
            "-- x\nDROP TABLE t",
            "SELECT 1; DROP TABLE t",
            "SELECT 1;\n/* x */ DELETE FROM t; SELECT 2",
            "COMMIT; DROP TABLE t",
            "DELETE FROM t RETURNING id",
            "INSERT INTO t VALUES (4, 'four') RETURNING *",
        ];
        const SOME: &[(&str, &[&str])] = &[
            (
                "sqlite",
                &[
                    "WITH x AS (SELECT 1) DELETE FROM t",
                    "WITH x AS (SELECT 4) INSERT INTO t SELECT *, 'x' FROM x",
                    "REPLACE INTO t VALUES (1, 'x')",
                    "CREATE TEMP TABLE x (a)",
                    "CREATE VIRTUAL TABLE x USING fts5(a)",
                    "ANALYZE",
                    "REINDEX",
                    "VACUUM",
                ],
            ),
            (
                "postgres",
                &[
                    "WITH x AS (SELECT 1) DELETE FROM t",
                    "WITH x AS (DELETE FROM t RETURNING id) SELECT * FROM x",
                    "SELECT * FROM (WITH x AS (DELETE FROM t RETURNING id) SELECT * FROM x) y",
                    "SELECT 1) q(c1); DROP TABLE t; SELECT * FROM (SELECT 1",
                    "EXPLAIN ANALYZE DELETE FROM t",
                    "EXPLAIN (ANALYZE, FORMAT JSON) DELETE FROM t",
                    "DO $$ BEGIN DELETE FROM t; END $$",
                    "SELECT * INTO x FROM t",
                    "CREATE TABLE x AS SELECT 1",
                    "CREATE TEMP TABLE x (a INT)",
                    "TRUNCATE t",
                    "MERGE INTO t USING (VALUES (1)) v(i) ON v.i = t.id WHEN MATCHED THEN DELETE",
                    "COPY t FROM PROGRAM 'echo 4'",
                    "COPY t TO '/tmp/prowess-copied'",
                    "PREPARE x AS DELETE FROM t",
                    "SELECT * FROM t FOR UPDATE",
                    "LOCK TABLE t",
                    "NOTIFY x",
                    "VACUUM t",
                    "REFRESH MATERIALIZED VIEW t",
                    "CALL x()",
                    "GRANT ALL ON t TO PUBLIC",
                ],
            ),
            (
                "mariadb",
                &[
                    "REPLACE INTO t VALUES (1, 'x')",
                    "/*!50000 DELETE FROM t */",
                    "SELECT 1 /*! INTO OUTFILE '/tmp/prowess-outfile' */",
                    "SELECT 1 INTO OUTFILE '/tmp/prowess-outfile'",
                    "SELECT 1 INTO DUMPFILE '/tmp/prowess-outfile'",
                    "SELECT 1 INTO @x",
                    "BEGIN NOT ATOMIC COMMIT; DELETE FROM t; END",
                    "EXECUTE IMMEDIATE 'DELETE FROM t'",
                    "ANALYZE DELETE FROM t",
                    "ANALYZE TABLE t",
                    "OPTIMIZE TABLE t",
                    "REPAIR TABLE t",
                    "TRUNCATE t",
                    "CREATE TEMPORARY TABLE x (a INT)",
                    "LOAD DATA INFILE '/etc/passwd' INTO TABLE t",
                    "LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE t",
                    "SELECT * FROM t FOR UPDATE",
                    "LOCK TABLES t WRITE",
                    "HANDLER t OPEN",
                    "CALL x()",
                    "KILL 1",
                    "SHUTDOWN",
                    "SET PASSWORD = PASSWORD('x')",
                    "GRANT ALL ON *.* TO CURRENT_USER()",
                ],
            ),
        ];
        for stage in stages().await {
            let own = SOME.iter().find(|it| it.0 == stage.name).unwrap().1;
            for sql in ALL.iter().chain(own) {
                let outcome = stage.read(sql).await;
                let refused =
                    matches!(outcome.status, OutcomeStatus::Refused | OutcomeStatus::Failed);
                assert!(refused, "{}: {sql}: {outcome:?}", stage.name);
                if !sql.contains(';') && ALL.contains(sql) {
                    assert_eq!(outcome.status, OutcomeStatus::Refused, "{}: {sql}", stage.name);
                    let hint = outcome.hint.unwrap();
                    assert!(hint.contains("`write = true`"), "{hint}");
                }
            }
            stage.assert_unchanged().await;
        }
    }

    #[tokio::test]
    #[cfg_attr(not(feature = "external"), ignore = "needs PostgreSQL and MariaDB")]
    async fn a_transaction_that_reads_cannot_be_left() {
        let sqlite = Stage::sqlite().await;
        for sql in ["BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT x", "PRAGMA query_only = 0"] {
            assert_eq!(sqlite.read(sql).await.status, OutcomeStatus::Refused, "{sql}");
        }
        let postgres = Stage::postgres().await;
        for sql in [
            "COMMIT",
            "ROLLBACK",
            "BEGIN READ WRITE",
            "COMMIT AND CHAIN",
            "SET TRANSACTION READ WRITE",
            "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE",
            "SET transaction_read_only = off",
            "RESET ALL",
            "DISCARD ALL",
            "DO $$ BEGIN COMMIT; DELETE FROM t; END $$",
            "SELECT set_config('transaction_read_only', 'off', true)",
            "SELECT set_config('transaction_read_only', 'off', false), query_to_xml('DELETE FROM t', true, true, '')",
            "SELECT query_to_xml('DELETE FROM t RETURNING id', true, true, '')",
        ] {
            assert!(!postgres.read(sql).await.is_ok(), "{sql}");
        }
        postgres.assert_unchanged().await;
        let mariadb = Stage::mariadb().await;
        for sql in [
            "COMMIT",
            "ROLLBACK",
            "START TRANSACTION READ WRITE",
            "SET SESSION TRANSACTION READ WRITE",
            "SET @@session.tx_read_only = 0",
            "XA START 'x'",
            "SET STATEMENT tx_read_only = 0 FOR DELETE FROM t",
            "EXECUTE IMMEDIATE 'COMMIT'",
        ] {
            assert!(!mariadb.read(sql).await.is_ok(), "{sql}");
        }
        mariadb.assert_unchanged().await;
    }

    #[tokio::test]
    #[cfg_attr(not(feature = "external"), ignore = "needs PostgreSQL and MariaDB")]
    async fn sql_006_functions_that_write_or_reach_beyond_the_database_are_refused() {
        let postgres = Stage::postgres().await;
        let made = "CREATE SEQUENCE s; CREATE FUNCTION f() RETURNS int LANGUAGE sql AS \
                    'DELETE FROM t RETURNING id'";
        let mut connection = PgConnection::connect(&postgres.address).await.unwrap();
        connection.execute(made).await.unwrap();
        let own = sqlx::query_scalar("SELECT pg_backend_pid()");
        let own: i32 = own.fetch_one(&mut connection).await.unwrap();
        for sql in [
            "SELECT nextval('s')",
            "SELECT setval('s', 100)",
            "SELECT f()",
            "SELECT pg_read_file('/etc/passwd')",
            "SELECT pg_read_binary_file('/etc/passwd')",
            "SELECT * FROM pg_ls_dir('/')",
            "SELECT lo_import('/etc/passwd')",
            "SELECT lo_export(1, '/tmp/prowess-exported')",
            "SELECT lo_from_bytea(4242, 'x'), lo_export(4242, '/tmp/prowess-exported')",
            "SELECT * FROM dblink('', 'DELETE FROM t') AS x(a int)",
            "SELECT pg_reload_conf()",
            // Every user may do this to their own sessions, and no transaction reverts it.
            &format!("SELECT pg_terminate_backend({own})"),
            &format!("SELECT PG_Catalog.\"pg_cancel_backend\"/**/({own})"),
            &format!(r#"SELECT U&"pg\005fterminate_backend"({own})"#),
            &format!(
                "SELECT query_to_xml('SELECT pg_term' || 'inate_backend({own})', true, true, '')"
            ),
            &format!(
                "SELECT * FROM ts_stat('SELECT to_tsvector(pg_term' || 'inate_backend({own})::text)')"
            ),
            "SELECT pg_logical_emit_message(false, 'a', 'b')",
        ] {
            let outcome = postgres.read(sql).await;
            assert!(
                matches!(outcome.status, OutcomeStatus::Refused | OutcomeStatus::Failed),
                "{sql}: {outcome:?}"
            );
        }
        connection.execute("SELECT 1").await.unwrap();
        // A name that merely contains one of these is allowed.
        assert_eq!(postgres.rows("SELECT 1 AS accounts_status").await, json!([[1]]));
        // Effects of a transaction are reverted with it.
        let mut listener = PgListener::connect(&postgres.address).await.unwrap();
        listener.listen("news").await.unwrap();
        assert!(postgres.read("SELECT pg_notify('news', 'x')").await.is_ok());
        let told = tokio::time::timeout(Duration::from_millis(300), listener.recv()).await;
        assert!(told.is_err(), "{told:?}");
        assert!(postgres.read("SELECT lo_from_bytea(4242, 'x')").await.is_ok());
        let rows = postgres.rows("SELECT last_value, is_called FROM s").await;
        assert_eq!(rows, json!([[1, false]]));
        let large = postgres.rows("SELECT count(*) FROM pg_largeobject_metadata").await;
        assert_eq!(large, json!([[0]]));
        postgres.assert_unchanged().await;

        let mariadb = Stage::mariadb().await;
        let mut connection = MySqlConnection::connect(&mariadb.address).await.unwrap();
        let made =
            "CREATE FUNCTION f() RETURNS INT MODIFIES SQL DATA BEGIN DELETE FROM t; RETURN 1; END";
        sqlx::raw_sql(made).execute(&mut connection).await.unwrap();
        assert_eq!(mariadb.read("SELECT f()").await.status, OutcomeStatus::Refused);
        let file = mariadb.rows("SELECT LOAD_FILE('/etc/passwd')").await;
        assert_eq!(file, json!([[null]]));
        mariadb.assert_unchanged().await;
        sqlx::raw_sql("CREATE SEQUENCE s").execute(&mut connection).await.unwrap();
        for sql in ["SELECT NEXTVAL(s)", "SELECT SETVAL(s, 100)", "SELECT NEXT VALUE FOR s"] {
            let outcome = mariadb.read(sql).await;
            assert_eq!(outcome.status, OutcomeStatus::Refused, "{sql}: {outcome:?}");
        }
    }

    #[tokio::test]
    async fn sql_009_sql_010_sql_011_sqlite_opens_no_other_file_loads_no_code_and_takes_no_setting()
    {
        let stage = Stage::sqlite().await;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("new.db");
        let file = file.display();
        for sql in [
            &*format!("ATTACH '{file}' AS x"),
            &*format!("ATTACH 'file:{file}?mode=rwc' AS x"),
            &*format!("VACUUM INTO '{file}'"),
            "DETACH main",
            "PRAGMA query_only = 0",
            "PRAGMA query_only(0)",
            "PRAGMA writable_schema = 1",
            "PRAGMA temp_store_directory = '/tmp'",
            "PRAGMA key = 'x'",
            "PRAGMA journal_mode = DELETE",
            "PRAGMA user_version = 7",
            "PRAGMA main.user_version = 7",
            "PRAGMA hard_heap_limit = 1",
            "PRAGMA data_store_directory = '/tmp'",
            "SELECT * FROM pragma_user_version(7)",
            "SELECT load_extension('x.so')",
            "SELECT LOAD_EXTENSION('x.so')",
            "SELECT * FROM t WHERE load_extension('x.so') IS NULL",
            "SELECT fts3_tokenizer('simple')",
            "SELECT fts3_tokenizer('simple', x'00')",
            "SELECT readfile('/etc/passwd')",
            "SELECT writefile('/tmp/prowess-x', 'x')",
            "SELECT edit('x')",
        ] {
            let outcome = stage.read(sql).await;
            assert!(
                matches!(outcome.status, OutcomeStatus::Refused | OutcomeStatus::Failed),
                "{sql}: {outcome:?}"
            );
            assert_ne!(outcome.message.as_deref(), Some(""), "{sql}");
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        for (sql, rows) in [
            ("PRAGMA user_version", json!([[0]])),
            ("SELECT name FROM pragma_table_info('t')", json!([["id"], ["name"]])),
            ("SELECT upper(name), abs(-id) FROM t WHERE id = 1", json!([["ONE", 1]])),
        ] {
            assert_eq!(stage.rows(sql).await, rows, "{sql}");
        }
        assert!(stage.read("PRAGMA table_info(t)").await.is_ok());
        stage.assert_unchanged().await;
        // Full-text and spatial indexes are read through their own tables.
        let mut connection = SqliteConnection::connect(&stage.address).await.unwrap();
        let made = "CREATE VIRTUAL TABLE words USING fts5(a); INSERT INTO words VALUES ('hello world');
            CREATE VIRTUAL TABLE old USING fts4(a); INSERT INTO old VALUES ('hello world');
            CREATE VIRTUAL TABLE places USING rtree(id, x0, x1); INSERT INTO places VALUES (1, 0, 1)";
        sqlx::raw_sql(made).execute(&mut connection).await.unwrap();
        for table in ["words", "old"] {
            let sql = format!("SELECT a FROM {table} WHERE {table} MATCH 'hello'");
            assert_eq!(stage.rows(&sql).await, json!([["hello world"]]), "{table}");
        }
        assert_eq!(stage.rows("SELECT id FROM places WHERE x1 > 0").await, json!([[1]]));
        for sql in [
            "DELETE FROM words_data",
            "DELETE FROM words_data RETURNING id",
            "INSERT INTO words VALUES ('x')",
            "INSERT INTO words(words) VALUES ('rebuild')",
            "DELETE FROM places",
            "UPDATE places_node SET data = x'00' RETURNING nodeno",
        ] {
            let outcome = stage.read(sql).await;
            assert!(
                matches!(outcome.status, OutcomeStatus::Refused | OutcomeStatus::Failed),
                "{sql}: {outcome:?}"
            );
        }
        assert_eq!(stage.rows("SELECT count(*) FROM words").await, json!([[1]]));
        assert_eq!(stage.rows("SELECT count(*) FROM places").await, json!([[1]]));
    }

    #[tokio::test]
    async fn sql_014_a_name_is_a_value_where_the_database_takes_it_as_one() {
        for stage in stages().await {
            let sql = match stage.name {
                "sqlite" => "SELECT name FROM pragma_table_info(?)",
                "postgres" => {
                    "SELECT column_name FROM information_schema.columns WHERE table_name = $1"
                }
                _ => {
                    "SELECT column_name FROM information_schema.columns \
                     WHERE table_schema = database() AND table_name = ?"
                }
            };
            let tool = stage.tool(Access::Read);
            for (name, rows) in
                [("t", json!([["id"], ["name"]])), ("t\"; DROP TABLE t; --", json!([]))]
            {
                let outcome = call(&tool, sql, &[json!(name)]).await;
                assert_eq!(outcome.output.unwrap()["rows"], rows, "{}: {name}", stage.name);
            }
            stage.assert_unchanged().await;
        }
    }

    #[tokio::test]
    #[cfg_attr(not(feature = "external"), ignore = "needs PostgreSQL and MariaDB")]
    async fn sql_006_whoever_owns_the_server_reads_and_does_nothing_else() {
        let owner = |stage: &Stage| {
            tool(open(&stage.owner, Access::Read, Privileges::Limited).unwrap(), Access::Read)
        };
        let postgres = Stage::postgres().await;
        let mut other = PgConnection::connect(&postgres.owner).await.unwrap();
        let made = "
            CREATE SEQUENCE s;
            CREATE EXTENSION dblink;
            CREATE SCHEMA postgres; CREATE TABLE postgres.own AS SELECT 7 AS id;
            CREATE FUNCTION run(text) RETURNS int LANGUAGE plpgsql AS 'BEGIN EXECUTE $1; RETURN 1; END';
            CREATE TABLE hidden AS SELECT 1 AS id; ALTER TABLE hidden ENABLE ROW LEVEL SECURITY";
        sqlx::raw_sql(made).execute(&mut other).await.unwrap();
        let rights = "SELECT md5(string_agg(it::text, ',' ORDER BY oid)) FROM pg_proc it";
        let before: String = sqlx::query_scalar(rights).fetch_one(&mut other).await.unwrap();
        let own = "SELECT pg_backend_pid()";
        let own: i32 = sqlx::query_scalar(own).fetch_one(&mut other).await.unwrap();
        let asked = owner(&postgres);
        for sql in [
            "SELECT nextval('s')",
            "SELECT setval('s', 100)",
            "SELECT pg_read_file('/etc/passwd')",
            "SELECT pg_read_binary_file('/etc/passwd')",
            "SELECT pg_stat_file('/etc/passwd')",
            "SELECT * FROM pg_ls_dir('/')",
            "SELECT lo_import('/etc/passwd')",
            "SELECT lo_from_bytea(4242, 'x'), lo_export(4242, '/tmp/prowess-exported')",
            "SELECT * FROM dblink('host=127.0.0.1', 'DELETE FROM t') AS x(a int)",
            "SELECT dblink_connect_u('x', 'host=127.0.0.1')",
            &format!("SELECT pg_terminate_backend({own})"),
            &format!("SELECT pg_cancel_backend({own})"),
            "SELECT pg_reload_conf()",
            "SELECT pg_switch_wal()",
            "SELECT pg_stat_reset()",
            "SELECT pg_create_physical_replication_slot('prowess')",
            "COPY t TO PROGRAM 'id'",
            "SELECT set_config('role', 'postgres', false)",
            "SELECT set_config('role', 'none', true), pg_read_file('/etc/passwd')",
            "SELECT set_config('session_authorization', 'postgres', false)",
            "SELECT set_config('transaction_read_only', 'off', false)",
            "SELECT set_config('session_replication_role', 'replica', false)",
            "SELECT query_to_xml($$SELECT set_config('role', 'postgres', false)$$, true, true, '')",
            "SELECT query_to_xml('SELECT pg_read_file(''/etc/passwd'')', true, true, '')",
            "EXPLAIN ANALYZE SELECT pg_read_file('/etc/passwd')",
            "SELECT run('RESET ROLE')",
            "SELECT run('RESET ALL; RESET ROLE')",
            "SELECT run('SET SESSION AUTHORIZATION DEFAULT')",
            "SELECT run('SET TRANSACTION READ WRITE')",
            "SELECT run('COPY t TO PROGRAM ''id''')",
            "SELECT run('COPY t TO ''/tmp/prowess-copied''')",
            "SELECT run('ALTER FUNCTION pg_temp.prowess_reader OWNER TO postgres')",
            "SELECT run('CREATE TEMP TABLE x (id int)')",
            "SELECT run('COMMIT')",
            "SELECT run('DELETE FROM t')",
            "DELETE FROM t RETURNING name",
            "WITH x AS (DELETE FROM t RETURNING id) SELECT * FROM x",
            "SELECT * FROM hidden",
        ] {
            let outcome = call(&asked, sql, &[]).await;
            let held = matches!(outcome.status, OutcomeStatus::Refused | OutcomeStatus::Failed);
            assert!(held, "{sql}: {outcome:?}");
            assert!(!outcome.message.unwrap().contains("is a superuser"), "{sql} was not asked");
        }
        let after: String = sqlx::query_scalar(rights).fetch_one(&mut other).await.unwrap();
        assert_eq!(after, before);
        let state = "SELECT last_value = 1 AND NOT is_called, (SELECT count(*) FROM pg_largeobject), \
                     (SELECT count(*) FROM pg_replication_slots) FROM s";
        let state: (bool, i64, i64) = sqlx::query_as(state).fetch_one(&mut other).await.unwrap();
        assert_eq!(state, (true, 0, 0));
        let rows = async |sql: &str, params: &[Json]| {
            let outcome = call(&asked, sql, params).await;
            assert!(outcome.is_ok(), "{sql}: {outcome:?}");
            outcome.output.unwrap()["rows"].take()
        };
        let sql = "SELECT id, name, decode('ff', 'hex'), ARRAY[1, 2] FROM t \
                   WHERE id = ANY($1) AND $2::date < now()";
        let given = [json!([1, 9]), json!("2024-02-29")];
        assert_eq!(rows(sql, &given).await, json!([[1, "one", "/w==", [1, 2]]]));
        assert_eq!(rows("SELECT id FROM own", &[]).await, json!([[7]]));
        assert_eq!(rows("SHOW transaction_read_only", &[]).await, json!([["on"]]));
        let plan = rows("EXPLAIN (FORMAT JSON) SELECT * FROM t", &[]).await;
        assert!(plan[0][0][0]["Plan"].is_object(), "{plan}");
        // None of them waits for another one.
        let sleep = || rows("SELECT pg_sleep(3600)::text", &[]);
        let all_run = async {
            let sleep = format!(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND {PG_SLEEPS}"
            );
            until_counted(4, async || {
                sqlx::query_scalar(AssertSqlSafe(&*sleep)).fetch_one(&mut other).await.unwrap()
            })
            .await;
        };
        tokio::select! {
            _ = async { tokio::join!(sleep(), sleep(), sleep(), sleep()) } => unreachable!(),
            () = all_run => {}
        }

        let mariadb = Stage::mariadb().await;
        let asked = owner(&mariadb);
        let mut other = MySqlConnection::connect(&mariadb.owner).await.unwrap();
        let own = "SELECT CONNECTION_ID()";
        let own: u64 = sqlx::query_scalar(own).fetch_one(&mut other).await.unwrap();
        let limit = "SELECT @@GLOBAL.max_connections";
        let before: u64 = sqlx::query_scalar(limit).fetch_one(&mut other).await.unwrap();
        sqlx::raw_sql("CREATE SEQUENCE s").execute(&mut other).await.unwrap();
        for sql in [
            "SELECT LOAD_FILE('/etc/passwd')",
            "SELECT `load_file`('/etc/passwd')",
            "SELECT /*!50000lOaD_fIlE*/ ('/etc/passwd')",
            "SELECT LÔAD_FILE('/etc/passwd')",
            "SELECT 1 FROM t WHERE LOAD_FILE('/etc/passwd') LIKE 'root%'",
            "SHOW TABLES WHERE EXTRACTVALUE(1, CONCAT('~', LOAD_FILE('/etc/passwd')))",
            "EXPLAIN SELECT EXTRACTVALUE(1, CONCAT('~', LOAD_FILE('/etc/passwd')))",
            "SELECT GET_LOCK('x', 0)",
            "SELECT 1 INTO OUTFILE '/tmp/prowess-outfile'",
            "SELECT 1 UNION SELECT 2 INTO DUMPFILE '/tmp/prowess-dumpfile'",
            "(SELECT 1 INTO OUTFILE '/tmp/prowess-outfile')",
            "SET GLOBAL max_connections = 77",
            "SET STATEMENT max_statement_time = 0 FOR SELECT 1",
            "SELECT 1; SET GLOBAL max_connections = 77",
            "EXECUTE IMMEDIATE CONCAT('SELECT LOAD', '_FILE(''/etc/passwd'')')",
            "PREPARE x FROM 'SET GLOBAL max_connections = 77'",
            "BEGIN NOT ATOMIC SET GLOBAL max_connections = 77; END",
            &format!("KILL {own}"),
            "SHUTDOWN",
            "FLUSH TABLES WITH READ LOCK",
            "PURGE BINARY LOGS BEFORE NOW()",
            "INSTALL SONAME 'ha_blackhole'",
            "LOAD DATA INFILE '/etc/passwd' INTO TABLE t",
            "CREATE USER prowess",
            "SELECT NEXTVAL(s)",
            "ANALYZE DELETE FROM t",
            "ANALYZE TABLE t",
            "DELETE FROM mysql.global_priv",
        ] {
            let outcome = call(&asked, sql, &[]).await;
            let held = matches!(outcome.status, OutcomeStatus::Refused | OutcomeStatus::Failed);
            assert!(held, "{sql}: {outcome:?}");
            assert!(!outcome.message.unwrap().contains("PRIVILEGES"), "{sql} was not asked");
        }
        let after: u64 = sqlx::query_scalar(limit).fetch_one(&mut other).await.unwrap();
        assert_eq!(after, before);
        let sql = "SELECT name AS a, id AS a FROM t WHERE id < ? AND 'Нижний_Новгород' <> ''";
        let outcome = call(&asked, sql, &[json!(2)]).await;
        assert_eq!(outcome.output.unwrap()["rows"], json!([["one", 1]]));
        for name in ["exported", "copied", "outfile", "dumpfile"] {
            assert!(!std::path::Path::new(&format!("/tmp/prowess-{name}")).exists(), "{name}");
        }
        for stage in [&postgres, &mariadb] {
            let rows = call(&owner(stage), "SELECT id, name FROM t ORDER BY id", &[]).await;
            let expected = json!([[1, "one"], [2, "two"], [3, null]]);
            assert_eq!(rows.output.unwrap()["rows"], expected, "{}", stage.name);
        }
    }

    #[tokio::test]
    #[cfg_attr(not(feature = "external"), ignore = "needs PostgreSQL and MariaDB")]
    async fn whoever_cannot_be_held_back_is_refused() {
        let postgres = Stage::postgres().await;
        let mariadb = Stage::mariadb().await;
        let owner = |stage: &Stage, access, privileges| {
            tool(open(&stage.owner, access, privileges).unwrap(), access)
        };
        let superuser = "`postgres` is a privileged database user: it is a superuser";
        let root = "`root@127.0.0.1` is a privileged database user: it has ALL PRIVILEGES \
                    on the whole server";
        for (stage, message) in [(&postgres, superuser), (&mariadb, root)] {
            let writing = owner(stage, Access::Write, Privileges::Limited);
            let outcome = call(&writing, "SELECT 1", &[]).await;
            assert_eq!(statuses(&outcome), (OutcomeStatus::Refused, message));
            assert!(outcome.hint.unwrap().contains("`privileged = true`"));
        }
        // Like on a standby, no function can be created.
        let mut other = PgConnection::connect(&postgres.owner).await.unwrap();
        other.execute("DROP EXTENSION plpgsql").await.unwrap();
        let reading = owner(&postgres, Access::Read, Privileges::Limited);
        let outcome = call(&reading, "SELECT 1", &[]).await;
        assert_eq!(statuses(&outcome), (OutcomeStatus::Refused, superuser));

        let user = postgres.address.split(['/', ':']).find(|it| it.starts_with("user_")).unwrap();
        let grant = format!("GRANT pg_read_server_files TO {user}");
        sqlx::raw_sql(AssertSqlSafe(grant)).execute(&mut other).await.unwrap();
        let outcome = postgres.read("SELECT 1").await;
        assert_eq!(outcome.status, OutcomeStatus::Refused, "{outcome:?}");

        let files =
            ["SELECT pg_read_file('/etc/passwd')", "SELECT CAST(LOAD_FILE('/etc/passwd') AS CHAR)"];
        for (stage, sql) in [&postgres, &mariadb].into_iter().zip(files) {
            let allowed = owner(stage, Access::Read, Privileges::All);
            let outcome = call(&allowed, sql, &[]).await;
            assert!(outcome.output.unwrap()["rows"][0][0].as_str().unwrap().contains("root"));
            assert_eq!(call(&allowed, "DELETE FROM t", &[]).await.status, OutcomeStatus::Refused);
        }
    }

    #[tokio::test]
    #[cfg_attr(not(feature = "external"), ignore = "needs PostgreSQL and MariaDB")]
    async fn tables_with_passwords_are_not_read() {
        let stage = Stage::postgres().await;
        let owner =
            tool(open(&stage.owner, Access::Read, Privileges::Limited).unwrap(), Access::Read);
        for asked in [owner, stage.tool(Access::Read)] {
            for sql in [
                "SELECT rolpassword FROM pg_authid",
                "SELECT * FROM pg_catalog.\"pg_authid\"",
                "SELECT passwd FROM pg_shadow",
                "SELECT umoptions FROM pg_user_mappings",
                "SELECT table_to_xml(('pg_a' || 'uthid')::regclass, true, true, '')",
            ] {
                let outcome = call(&asked, sql, &[]).await;
                assert_eq!(outcome.status, OutcomeStatus::Refused, "{sql}: {outcome:?}");
            }
            assert!(call(&asked, "SELECT rolname FROM pg_roles", &[]).await.is_ok());
        }
    }

    #[tokio::test]
    #[cfg_attr(not(feature = "external"), ignore = "needs PostgreSQL and MariaDB")]
    async fn what_a_session_keeps_does_not_outlast_the_statement() {
        let postgres = Stage::postgres().await;
        let pool = PgPoolOptions::new().max_connections(1);
        let pool = pool.connect(&postgres.address).await.unwrap();
        let database = PostgresDatabase {
            connections: Connections::Pool(pool.clone()),
            privileges: Privileges::Limited,
        };
        let asked = tool(Arc::new(database), Access::Read);
        let sql = "SELECT pg_advisory_lock(42), set_config('work_mem', '1MB', false)";
        assert!(call(&asked, sql, &[]).await.is_ok());
        patiently(async || {
            let free = "SELECT pg_try_advisory_lock(42), current_setting('work_mem')";
            let mut other = PgConnection::connect(&postgres.address).await?;
            let row: (bool, String) = sqlx::query_as(free).fetch_one(&mut other).await?;
            if row.0 { Ok(()) } else { Err(sqlx::Error::RowNotFound) }
        })
        .await;
        let memory: String = sqlx::query_scalar("SHOW work_mem").fetch_one(&pool).await.unwrap();
        assert_ne!(memory, "1MB");

        let mariadb = Stage::mariadb().await;
        let pool = MySqlPoolOptions::new().max_connections(1);
        let pool = pool.connect(&mariadb.address).await.unwrap();
        let database = MySqlDatabase {
            connections: Connections::Pool(pool.clone()),
            privileges: Privileges::Limited,
        };
        let asked = tool(Arc::new(database), Access::Read);
        let sql = "SELECT GET_LOCK(DATABASE(), 0), @kept := 7";
        assert!(call(&asked, sql, &[]).await.is_ok());
        patiently(async || {
            let free = "SELECT IS_FREE_LOCK(DATABASE())";
            let free: i64 = sqlx::query_scalar(free).fetch_one(&pool).await?;
            if free == 1 { Ok(()) } else { Err(sqlx::Error::RowNotFound) }
        })
        .await;
        let kept: Option<Vec<u8>> =
            sqlx::query_scalar("SELECT @kept").fetch_one(&pool).await.unwrap();
        assert_eq!(kept, None);
    }
}

mod a_statement_is_bounded {
    use super::*;

    /// Returns long-running statements for each kind of database.
    fn endless(stage: &Stage) -> &'static [&'static str] {
        match stage.name {
            "sqlite" => &[
                "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r",
                "SELECT count(*) FROM t a, t b, t c, t d, t e, t f, t g, t h, t i, t j, t k, t l, t m, \
                 t n, t o, t p, t q, t r, t s, t u, t v, t w, t x, t y, t z",
            ],
            "postgres" => &[
                "SELECT pg_sleep(3600)",
                "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT count(n) FROM r",
            ],
            _ => &[
                "SELECT SLEEP(3600)",
                "SELECT BENCHMARK(1000000000000, MD5('x'))",
                "SELECT COUNT(*) FROM seq_1_to_1000000000 a, seq_1_to_1000000000 b",
            ],
        }
    }

    /// Returns the number of statements that run on the server, except for our own.
    async fn running(stage: &Stage) -> i64 {
        match stage.name {
            "postgres" => {
                let mut owner = PgConnection::connect(&stage.owner).await.unwrap();
                let sql = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' \
                           AND datname = current_database() AND pid <> pg_backend_pid()";
                sqlx::query_scalar(sql).fetch_one(&mut owner).await.unwrap()
            }
            "mariadb" => {
                let mut owner = MySqlConnection::connect(&stage.owner).await.unwrap();
                let sql = "SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE() \
                           AND command IN ('Query', 'Execute') AND id <> CONNECTION_ID()";
                sqlx::query_scalar(sql).fetch_one(&mut owner).await.unwrap()
            }
            _ => 0,
        }
    }

    async fn assert_quiet(stage: &Stage) {
        let start = Instant::now();
        while running(stage).await > 0 {
            assert!(start.elapsed() < Duration::from_secs(60), "{} still runs it", stage.name);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    #[tokio::test]
    async fn sql_012_a_statement_that_does_not_end_is_stopped_in_time() {
        for stage in stages().await {
            for sql in endless(&stage) {
                let outcome = call(&brief(stage.tool(Access::Read), 300), sql, &[]).await;
                assert_eq!(
                    statuses(&outcome),
                    (OutcomeStatus::TimedOut, "the statement timed out after 300 ms"),
                    "{}: {sql}",
                    stage.name
                );
                assert_quiet(&stage).await;
            }
            stage.assert_unchanged().await;
        }
    }

    #[tokio::test]
    async fn a_statement_whose_answer_nobody_waits_for_is_stopped() {
        for stage in stages().await {
            let tool = stage.tool(Access::Read);
            let asked = call(&tool, endless(&stage)[0], &[]);
            assert!(tokio::time::timeout(Duration::from_millis(500), asked).await.is_err());
            assert_quiet(&stage).await;
            stage.assert_unchanged().await;
        }
        // A database in memory has one connection, which has to be returned.
        let pool = SqlitePoolOptions::new().max_connections(1);
        let pool = pool.connect("sqlite::memory:").await.unwrap();
        let tool = tool(
            Arc::new(SqliteDatabase { connections: Connections::Pool(pool.clone()) }),
            Access::Read,
        );
        let asked = call(&tool, endless(&Stage::sqlite().await)[0], &[]);
        assert!(tokio::time::timeout(Duration::from_millis(200), asked).await.is_err());
        pool.execute("CREATE TABLE x (a)").await.unwrap();
    }

    #[tokio::test]
    async fn sql_013_rows_values_and_all_of_them_together_are_bounded() {
        for stage in stages().await {
            let (rows, many, large) = match stage.name {
                "sqlite" => (
                    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n FROM r",
                    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) \
                     SELECT printf('%.*c', 60000, 'x') FROM r",
                    "SELECT hex(zeroblob(400000))",
                ),
                "postgres" => (
                    "SELECT generate_series(1, 1000000000000)",
                    "SELECT repeat('x', 60000) FROM generate_series(1, 1000000)",
                    "SELECT repeat('x', 200000000)",
                ),
                _ => (
                    "SELECT seq FROM seq_1_to_1000000000",
                    "SELECT REPEAT('x', 60000) FROM seq_1_to_1000000",
                    "SELECT REPEAT('x', 16000000)",
                ),
            };
            let output = stage.read(rows).await.output.unwrap();
            assert_eq!((&output["row_count"], &output["truncated"]), (&json!(1000), &json!(true)));
            assert_eq!(output["left_out"], json!(["all rows after the first 1000"]));
            assert_eq!(output["rows"][999], json!([1000]));

            let output = stage.read(many).await.output.unwrap();
            assert_eq!(output["left_out"], json!(["all rows after the first 1048576 bytes"]));
            assert_eq!(output["row_count"], json!(18), "{}", stage.name);

            let name = "x".repeat(50_000);
            let outcome = stage
                .read(
                    &format!(
                        "SELECT a.*, b.* FROM (SELECT 1 AS `{name}`) a, (SELECT 1 AS `{name}`) b"
                    )
                    .replace('`', "\""),
                )
                .await;
            let output = outcome.output.unwrap_or_default();
            assert!(output["columns"].to_string().len() < 1000, "{}", stage.name);

            let output = stage.read(large).await.output.unwrap();
            assert_eq!(output["left_out"], json!(["the end of 1 values over 65536 bytes"]));
            assert_eq!(output["rows"][0][0].as_str().unwrap().len(), 65536);
        }
        let sqlite = Stage::sqlite().await;
        for sql in ["SELECT zeroblob(900000000)", "SELECT hex(zeroblob(900000))"] {
            let outcome = sqlite.read(sql).await;
            assert_eq!(statuses(&outcome), (OutcomeStatus::Failed, "string or blob too big"));
        }
        let rows = sqlite.rows("SELECT printf('%.*c', 500000000, 'x')").await;
        assert!(rows[0][0].as_str().is_none_or(|it| it.len() <= 65536));
    }

    #[tokio::test]
    async fn sorting_does_not_fill_the_disk() {
        let sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) \
                   SELECT hex(randomblob(2000)) || i AS x FROM n ORDER BY x";
        let tool = Stage::sqlite().await;
        let tool = tool.tool(Access::Read);
        let outcome = call(&tool, sql, &[]).await;
        let message = outcome.message.unwrap_or_default();
        assert_eq!(outcome.status, OutcomeStatus::Failed, "{message}");
        assert!(message.contains("256 MiB of temporary files"), "{message}");
        assert!(call(&tool, "SELECT 1", &[]).await.is_ok());
        let sorted = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 20000) \
                      SELECT hex(randomblob(2000)) || i AS x FROM n ORDER BY x";
        assert!(call(&tool, sorted, &[]).await.is_ok());
    }

    #[tokio::test]
    async fn sqlite_takes_no_more_memory_than_it_may() {
        let rows = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 5000), \
                    t(name) AS (SELECT printf('%.*c', 3000, 'x') FROM n)";
        let stage = Stage::sqlite().await;
        let tool = stage.tool(Access::Read);
        let tool = ExecuteSql { limits: SqlLimits { memory: 64 << 20, ..tool.limits }, ..tool };
        for query in [
            "SELECT json_group_array(x.name), json_group_object(x.name, y.name) FROM t x, t y",
            "SELECT json_group_array(x.name) FROM t x, t y",
        ] {
            let outcome = call(&tool, &format!("{rows} {query}"), &[]).await;
            let (status, message) = statuses(&outcome);
            assert_eq!(status, OutcomeStatus::Failed, "{message}");
            assert!(message.contains("more than 64 MiB of memory (`limits.memory`)"), "{message}");
        }
        assert!(call(&tool, "SELECT json_group_array(name) FROM t", &[]).await.is_ok());
    }

    #[tokio::test]
    async fn no_function_of_sqlite_outlasts_the_time() {
        let stage = Stage::sqlite().await;
        for sql in [
            "SELECT instr(zeroblob(1000000), zeroblob(500000) || x'01')",
            "SELECT instr(printf('%.*c', 900000, 'a'), printf('%.*c', 450000, 'a') || 'b')",
            "SELECT length(replace(printf('%.*c', 900000, 'a'), printf('%.*c', 450000, 'a') || 'b', ''))",
            "SELECT length(trim(printf('%.*c', 400000, 'a'), printf('%.*c', 400000, 'b') || 'a'))",
            "SELECT length(ltrim(printf('%.*c', 400000, 'a'), printf('%.*c', 400000, 'b') || 'a'))",
            "SELECT length(rtrim(printf('%.*c', 400000, 'a'), printf('%.*c', 400000, 'b') || 'a'))",
        ] {
            let outcome = call(&brief(stage.tool(Access::Read), 4000), sql, &[]).await;
            assert!(outcome.is_ok(), "{sql}: {outcome:?}");
        }
        let sql = "SELECT replace(printf('%.*c', 900000, 'a'), 'a', printf('%.*c', 900000, 'b'))";
        assert_eq!(
            statuses(&stage.read(sql).await),
            (OutcomeStatus::Failed, "string or blob too big")
        );
        // A connection of the host has the built-in functions of SQLite.
        let pool = SqlitePoolOptions::new().connect(&stage.address).await.unwrap();
        let own =
            tool(Arc::new(SqliteDatabase { connections: Connections::Pool(pool) }), Access::Read);
        for sql in [
            "SELECT instr('größe', 'ß'), instr('abc', 'd'), instr('abc', ''), instr('', ''), instr('', 'a')",
            "SELECT instr(x'010203', x'0203'), instr(12345, 34), instr(NULL, 'a'), instr('a', NULL)",
            "SELECT instr(x'c3a4c3b6', 'ö'), instr(x'ff41', 'A'), instr('ä', x'a4')",
            "SELECT replace('abcabc', 'bc', 'x'), replace('aaa', 'aa', 'b'), replace('abc', '', 'x')",
            "SELECT replace('größe', 'ö', 'oe'), replace(NULL, 'a', 'b'), replace('a', NULL, 'b'), replace(121, 1, 7)",
            "SELECT typeof(replace(121, '', 7)), typeof(replace(121, 1, 7)), hex(replace(x'ff41ff', 'A', 'B'))",
            "SELECT trim('  a '), trim('xxaxbx', 'x'), ltrim('xxa', 'x'), rtrim('axx', 'x'), trim('', 'x')",
            "SELECT trim('ßaß', 'ß'), trim('abc', ''), trim(NULL, 'a'), trim('a', NULL), trim('aaa', 'a')",
            "SELECT trim('yxay', 'xy'), typeof(trim(121, 1)), trim(121, 1)",
        ] {
            let theirs = call(&own, sql, &[]).await.output.unwrap();
            assert_eq!(stage.rows(sql).await, theirs["rows"], "{sql}");
        }
    }

    #[tokio::test]
    async fn sql_015_a_pattern_cannot_take_forever() {
        let text = "a".repeat(30_000);
        for stage in stages().await {
            let pattern = match stage.name {
                "postgres" => format!("SELECT '{text}!' ~ '(a+)+$'"),
                "mariadb" => format!("SELECT '{text}!' REGEXP '(a+)+$'"),
                _ => format!("SELECT '{text}!' LIKE '{}'", "%a".repeat(5_000)),
            };
            let like = format!("SELECT '{text}!' LIKE '{}b'", "%a".repeat(100));
            for sql in [pattern, like] {
                call(&brief(stage.tool(Access::Read), 1000), &sql, &[]).await;
            }
        }
    }
}

mod writing_is_what_a_host_allows {
    use super::*;

    #[tokio::test]
    #[cfg_attr(not(feature = "external"), ignore = "needs PostgreSQL and MariaDB")]
    async fn what_a_statement_writes_is_kept_when_it_comes_to_its_end() {
        for stage in stages().await {
            let output = stage.write("UPDATE t SET name = 'x' WHERE id < 3").await.output.unwrap();
            assert_eq!((&output["rows_affected"], &output["columns"]), (&json!(2), &json!([])));
            let output =
                stage.write("INSERT INTO t VALUES (4, 'four') RETURNING id, name").await.output;
            assert_eq!(output.unwrap()["rows"], json!([[4, "four"]]), "{}", stage.name);
            assert!(stage.write("CREATE TABLE other (a INT)").await.is_ok());
            assert!(stage.write("SELECT * FROM t;").await.is_ok());
            let rows = stage.rows("SELECT name FROM t ORDER BY id").await;
            assert_eq!(rows, json!([["x"], ["x"], [null], ["four"]]), "{}", stage.name);
            assert_eq!(stage.rows("SELECT * FROM other").await, json!([]));
        }
        let postgres = Stage::postgres().await;
        let sql = "WITH gone AS (DELETE FROM t RETURNING id) SELECT count(*) FROM gone";
        assert_eq!(postgres.write(sql).await.output.unwrap()["rows"], json!([[3]]));
    }

    #[tokio::test]
    async fn a_statement_that_fails_leaves_nothing_behind() {
        for stage in stages().await {
            for sql in [
                "INSERT INTO t VALUES (4, 'four'), (1, 'again')",
                "INSERT INTO t VALUES (4, 'four'); INSERT INTO t VALUES (5, 'five')",
                "INSERT INTO t VALUES (4, 'four'); COMMIT; DROP TABLE t",
            ] {
                let outcome = stage.write(sql).await;
                let well = matches!(outcome.status, OutcomeStatus::Failed | OutcomeStatus::Refused);
                assert!(well, "{}: {sql}: {outcome:?}", stage.name);
                stage.assert_unchanged().await;
            }
        }
    }

    #[tokio::test]
    #[cfg_attr(not(feature = "external"), ignore = "needs PostgreSQL and MariaDB")]
    async fn writing_ends_at_the_tables() {
        let sqlite = Stage::sqlite().await;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("new.db");
        let file = file.display();
        for sql in [
            &*format!("ATTACH '{file}' AS x"),
            &*format!("VACUUM INTO '{file}'"),
            "PRAGMA writable_schema = 1",
            "SELECT load_extension('x.so')",
            "COMMIT",
            "UPDATE sqlite_master SET sql = ''",
        ] {
            assert!(!sqlite.write(sql).await.is_ok(), "{sql}");
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let postgres = Stage::postgres().await;
        for sql in ["COPY t TO PROGRAM 'id'", "COPY t TO '/tmp/prowess-copied'"] {
            assert_eq!(postgres.write(sql).await.status, OutcomeStatus::Refused, "{sql}");
        }
        let mariadb = Stage::mariadb().await;
        for sql in
            ["SELECT 1 INTO OUTFILE '/tmp/prowess-outfile'", "SET GLOBAL max_connections = 1"]
        {
            assert_eq!(mariadb.write(sql).await.status, OutcomeStatus::Refused, "{sql}");
        }
    }
}

mod the_address_is_a_secret {
    use super::*;

    #[tokio::test]
    #[cfg_attr(not(feature = "external"), ignore = "needs PostgreSQL and MariaDB")]
    async fn the_password_of_an_address_shows_nowhere() {
        let (postgres, mariadb) = (Stage::postgres().await, Stage::mariadb().await);
        let mut said = Vec::new();
        for stage in [postgres, mariadb] {
            let tool = brief(stage.tool(Access::Read), 2000);
            said.push(format!("{tool:?} {tool:#?}"));
            said.push(format!("{:?}", call(&tool, "SELECT nam FROM t", &[]).await));
        }
        for address in [
            "postgres://somebody:s3cret@127.0.0.1:1/x",
            "mysql://somebody:s3cret@127.0.0.1:1/x",
            "postgres://somebody:s3cret@127.0.0.1:notaport/x",
            "postgres://somebody:s3cret@127.0.0.1/x?sslmode=none-such",
            "mysql://somebody:s3cret@127.0.0.1/x?ssl-mode=none-such",
            "somebody:s3cret@127.0.0.1",
        ] {
            match open(address, Access::Read, Privileges::Limited) {
                Ok(database) => {
                    let tool = brief(tool(database, Access::Read), 500);
                    let outcome = call(&tool, "SELECT 1", &[]).await;
                    assert!(!outcome.is_ok());
                    said.push(format!("{tool:?} {outcome:?}"));
                }
                Err(error) => said.push(format!("{error} {error:?}")),
            }
        }
        for said in &said {
            assert!(!said.contains("s3cret"), "{said}");
        }
    }
}
