//! `specs/sql.md`: the tool with the settings of the program.

use serde_json::json;

use crate::world::World;

mod a_statement_is_bounded {
    use super::*;

    #[test]
    fn the_memory_of_sqlite_is_limited_by_the_settings() {
        let config = "[sql]\nurl = 'sqlite:empty.db'\n[limits]\nmemory = '64MiB'\n";
        let world = World::new().file("own.toml", config).file("empty.db", "");
        let sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 5000), \
                   t(name) AS (SELECT printf('%.*c', 3000, 'x') FROM n) \
                   SELECT json_group_array(x.name) FROM t x, t y";
        let input = json!({ "sql": sql }).to_string();
        let ran = world.run(["tool", "--config", "own.toml", "execute_sql", &input]);
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        assert!(ran.stderr.contains("more than 64 MiB of memory"), "{}", ran.stderr);
    }
}
