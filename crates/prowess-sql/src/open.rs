//! Creates a database from an address.

use std::{str::FromStr as _, sync::Arc, time::Duration};

use sqlx::{
    mysql::{MySqlConnectOptions, MySqlPoolOptions},
    pool::PoolOptions,
    postgres::{PgConnectOptions, PgPoolOptions},
    sqlite::{SqliteConnectOptions, SqlitePoolOptions},
};

use crate::{
    connections::Connections,
    database::{Access, Database, Privileges, SqlError},
    functions,
    mysql::MySqlDatabase,
    postgres::PostgresDatabase,
    sqlite::SqliteDatabase,
    temporary,
};

/// The timeout of opening a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Creates a database from an address such as `sqlite:notes.db`. Nothing is opened before the first
/// statement; a SQLite file is then opened read-only unless `access` allows writing.
pub fn open(
    address: &str,
    access: Access,
    privileges: Privileges,
) -> Result<Arc<dyn Database>, SqlError> {
    Ok(match address.split_once(':').map_or("", |it| it.0) {
        "sqlite" => {
            let options = SqliteConnectOptions::from_str(address).map_err(address_error)?;
            let options = options.create_if_missing(false).read_only(access == Access::Read);
            // A row is a copy of all its values, so only few are buffered.
            let options = options.row_buffer_size(1);
            let options = match temporary::IS_MEASURED {
                true => options,
                false => options.pragma("temp_store", "MEMORY"),
            };
            let pool =
                without_background_work(SqlitePoolOptions::new()).after_connect(|connection, _| {
                    Box::pin(async move {
                        functions::install(&mut connection.lock_handle().await?);
                        Ok(())
                    })
                });
            let pool = pool.connect_lazy_with(options);
            Arc::new(SqliteDatabase { connections: Connections::Pool(pool) })
        }
        "postgres" | "postgresql" => {
            let options = PgConnectOptions::from_str(address).map_err(address_error)?;
            let pool = without_background_work(PgPoolOptions::new()).connect_lazy_with(options);
            Arc::new(PostgresDatabase { connections: Connections::Pool(pool), privileges })
        }
        "mysql" | "mariadb" => {
            let options = MySqlConnectOptions::from_str(address).map_err(address_error)?;
            let pool = without_background_work(MySqlPoolOptions::new()).connect_lazy_with(options);
            Arc::new(MySqlDatabase { connections: Connections::Pool(pool), privileges })
        }
        _ => {
            let known = "expected `sqlite:`, `postgres:` or `mysql:` at its beginning";
            return Err(SqlError::Address(known.to_owned()));
        }
    })
}

/// Returns an error about an address; that of sqlx names the invalid part, never the password.
fn address_error(error: sqlx::Error) -> SqlError {
    let message = error.to_string();
    SqlError::Address(message.trim_start_matches("error with configuration: ").to_owned())
}

/// Returns the options of a pool without background work, so that it can be created anywhere.
fn without_background_work<D: sqlx::Database>(options: PoolOptions<D>) -> PoolOptions<D> {
    options.acquire_timeout(CONNECT_TIMEOUT).idle_timeout(None).max_lifetime(None)
}
