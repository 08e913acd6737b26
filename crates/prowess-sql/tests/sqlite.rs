//! Statements on a SQLite file: the smallest database, which needs no server.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

use std::{path::Path, time::Duration};

use prowess_sql::{Access, Privileges, SqlError, SqlLimits, Statement, Table, open};
use serde_json::{Value, json};
use sqlx::{Connection as _, SqliteConnection};

/// Makes a file with a table of three rows.
async fn file(folder: &Path) -> String {
    let address = format!("sqlite:{}", folder.join("notes.db").display());
    let mut connection = SqliteConnection::connect(&format!("{address}?mode=rwc")).await.unwrap();
    let table = "CREATE TABLE t (id INTEGER); INSERT INTO t VALUES (1), (2), (3)";
    sqlx::raw_sql(table).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    address
}

async fn run(
    address: &str,
    access: Access,
    limits: SqlLimits,
    sql: &str,
    parameters: Vec<Value>,
) -> Result<Table, SqlError> {
    let database = open(address, access, Privileges::Limited)?;
    database.run(Statement { sql: sql.to_owned(), parameters, access, limits }).await
}

async fn read(sql: &str, parameters: Vec<Value>) -> Result<Table, SqlError> {
    let folder = tempfile::tempdir().unwrap();
    run(&file(folder.path()).await, Access::Read, SqlLimits::default(), sql, parameters).await
}

#[tokio::test]
async fn a_statement_reads_with_its_parameters() {
    let table = read("SELECT id AS n FROM t WHERE id > ?", vec![json!(1)]).await.unwrap();
    assert_eq!(table.columns[0].name, "n");
    assert_eq!(table.rows, [[json!(2)], [json!(3)]]);
    assert!(table.left_out.is_empty());
}

#[tokio::test]
async fn missing_and_extra_parameters_are_refused() {
    for parameters in [vec![], vec![json!(1), json!(2)]] {
        let given = parameters.len();
        let error = read("SELECT ?", parameters).await.unwrap_err();
        assert!(
            matches!(error, SqlError::Parameters { wanted: 1, given: it } if it == given),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_statement_that_may_only_read_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let address = file(folder.path()).await;
    let run = |access, sql| run(&address, access, SqlLimits::default(), sql, Vec::new());
    for sql in ["DELETE FROM t", "DROP TABLE t", "PRAGMA user_version = 7", "VACUUM"] {
        assert!(run(Access::Read, sql).await.is_err(), "{sql}");
    }
    assert_eq!(run(Access::Read, "SELECT count(*) FROM t").await.unwrap().rows, [[json!(3)]]);
    let deleted = run(Access::Write, "DELETE FROM t WHERE id = 1").await.unwrap();
    assert_eq!(deleted.rows_affected, Some(1));
}

#[tokio::test]
async fn more_than_the_limits_is_left_out_or_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let address = file(folder.path()).await;
    let run = |limits, sql| run(&address, Access::Read, limits, sql, Vec::new());
    let few = SqlLimits { rows: 2, ..SqlLimits::default() };
    let table = run(few, "SELECT id FROM t").await.unwrap();
    assert_eq!((table.rows.len(), table.left_out.len()), (2, 1), "{table:?}");

    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) \
                   SELECT count(*) FROM n";
    let brief = SqlLimits { timeout: Duration::from_millis(50), ..SqlLimits::default() };
    assert!(matches!(run(brief, endless).await, Err(SqlError::TimedOut(_))));
}

#[tokio::test]
async fn what_is_no_statement_is_an_error() {
    for sql in ["", "SELEC 1", "SELECT 1; SELECT 2", "SELECT '\0'"] {
        assert!(read(sql, Vec::new()).await.is_err(), "{sql:?}");
    }
    assert!(matches!(
        open("oracle://somewhere", Access::Read, Privileges::Limited),
        Err(SqlError::Address(_))
    ));
}
