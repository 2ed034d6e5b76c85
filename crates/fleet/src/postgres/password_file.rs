//! Password files of PostgreSQL: lines of `host:port:database:user:password`, as `psql` reads them.

use windlass_process::file::read_bounded;

use crate::address::FleetAddress;
use crate::service::FleetAccess;

/// The most bytes of a password file.
const MAX_PASSWORD_FILE_BYTES: u64 = 64 * 1024;

/// The user of a database.
#[derive(Debug, PartialEq, Eq)]
pub struct DatabaseLogin {
    pub user: String,
    pub password: Option<String>,
}

/// Returns the user that the address or the password file names.
pub fn find_login(access: &FleetAccess) -> Result<DatabaseLogin, String> {
    let address = &access.address;
    let text = match &access.credentials {
        Some(path) => {
            let bytes = read_bounded(path, MAX_PASSWORD_FILE_BYTES)
                .map_err(|error| format!("cannot read the credentials {}: {error}", path.display()))?;
            String::from_utf8_lossy(&bytes).into_owned()
        }
        None => String::new(),
    };
    let found = text.lines().find_map(|line| match_line(line, address));
    match (found, address.user()) {
        (Some(login), _) => Ok(login),
        (None, Some(user)) if access.credentials.is_none() => {
            Ok(DatabaseLogin { user: user.to_owned(), password: None })
        }
        (None, None) if access.credentials.is_none() => {
            Err("no user is known; write `postgres://user@host/database/project` or give a password file".to_owned())
        }
        (None, _) => Err(format!(
            "no line of the password file has the server, the database and the user of {address}; \
             a line is `host:port:database:user:password`"
        )),
    }
}

/// Returns the login of a line that fits the address.
fn match_line(line: &str, address: &FleetAddress) -> Option<DatabaseLogin> {
    let fields = split_fields(line.strip_suffix('\r').unwrap_or(line));
    let [host, port, database, user, password] = fields.try_into().ok()?;
    let fits = |field: &str, value: &str| field == "*" || field == value;
    let is_server = address.servers().iter().any(|server| {
        let is_local = server.is_socket() && host == "localhost";
        (is_local || fits(&host, &server.host)) && fits(&port, &server.port.to_string())
    });
    let is_user = address.user().is_none_or(|wanted| fits(&user, wanted));
    let user = address.user().map_or(user, str::to_owned);
    (is_server && fits(&database, address.database()?) && is_user && user != "*" && !line.starts_with('#'))
        .then_some(DatabaseLogin { user, password: Some(password) })
}

/// Splits a line at colons. A backslash takes the sign after it as it is.
fn split_fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut signs = line.chars();
    while let Some(sign) = signs.next() {
        let field = fields.last_mut().expect("there is a first field");
        match sign {
            ':' => fields.push(String::new()),
            '\\' => field.extend(signs.next()),
            sign => field.push(sign),
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_login(line: &str, address: &str, expected: Option<(&str, &str)>) {
        let found = match_line(line, &address.parse().unwrap());
        let found = found.map(|login| (login.user, login.password.unwrap_or_default()));
        let expected = expected.map(|(user, password)| (user.to_owned(), password.to_owned()));
        assert_eq!(found, expected, "{line}");
    }

    #[test]
    fn password_line_fits_server_database_and_user() {
        let address = "postgres://db:6000,db2/work/pump";
        check_login("db:6000:work:me:secret", address, Some(("me", "secret")));
        check_login("db2:*:*:me:a\\:b\\\\c", address, Some(("me", "a:b\\c")));
        check_login("db:5432:work:me:secret", address, None);
        check_login("db:6000:other:me:secret", address, None);
        check_login("db:6000:work:*:secret", address, None);
        check_login("#db:6000:work:me:secret", address, None);
        let address = "postgres://you@%2Frun/work/pump";
        check_login("localhost:5432:work:*:secret", address, Some(("you", "secret")));
        check_login("localhost:5432:work:me:secret", address, None);
    }
}
