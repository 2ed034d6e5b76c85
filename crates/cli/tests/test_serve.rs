//! `windlass serve`: logins, roles, and requests that are refused.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::TestWorld;
use crate::support::web_page::ServedPage;
use crate::test_run::create_agent_project;

const JSON_BODY: &str = "Content-Type: application/json";

#[test]
fn login_code_works_once_and_sets_strict_cookie() {
    let world = TestWorld::new();
    let page = ServedPage::new(&world, &[]);
    assert_eq!(page.get("/api/now", "").error(), (401, "not_logged_in".to_owned()));
    assert_eq!(page.get("/api/now", &page.code).status, 401);
    let answer = page.log_in();
    assert_eq!((answer.status, &answer.json()["role"]), (200, &json!("manage")));
    let cookie = answer.header("set-cookie").to_owned();
    for part in ["__Host-windlass-", "Path=/", "Secure", "HttpOnly", "SameSite=Strict"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert_eq!(page.log_in().error(), (401, "login".to_owned()));
    let cookie = format!("Cookie: {}", cookie.split(';').next().unwrap());
    let host = format!("Host: {}", page.host);
    let get = |path: &str| page.send_raw(&format!("GET {path}"), &[host.clone(), cookie.clone()], "");
    assert_eq!(get("/api/now").status, 200);
    let headers = [host.clone(), cookie.clone(), JSON_BODY.to_owned(), format!("Origin: http://{}", page.host)];
    assert_eq!(page.send_raw("POST /api/logout", &headers, "{}").status, 200);
    assert_eq!(get("/api/now").status, 401);
}

#[test]
fn revoked_viewer_is_logged_out() {
    let world = TestWorld::with_tasks(&["First"]);
    let page = ServedPage::new(&world, &[]);
    let token = ServedPage::create_token(&world, "look");
    world.run_ok(&["serve", "invite", "robot", "--may", "manage"]);
    let mut logins = world.json_lines(&["serve", "invite", "--list"]);
    logins.retain(|login| login["name"] == "robot");
    let shown: Vec<(&Value, &Value)> = logins.iter().map(|login| (&login["kind"], &login["may"])).collect();
    assert_eq!(shown, [(&json!("token"), &json!("look")), (&json!("code"), &json!("manage"))]);
    assert!(!world.run_ok(&["serve", "invite", "--list"]).contains(&token));
    let mut events = page.open_events(&token, 0);
    let mut line = String::new();
    while !line.contains("event: ready") {
        line.clear();
        assert!(events.read_line(&mut line).unwrap() > 0, "the stream is open");
    }
    assert_eq!(world.run_ok(&["serve", "invite", "--revoke", "robot"]), "ended 2 logins of robot\n");
    assert_eq!(page.get("/api/now", &token).error(), (401, "not_logged_in".to_owned()));
    world.run_ok(&["task", "add", "Second"]);
    let mut rest = String::new();
    events.read_to_string(&mut rest).unwrap();
    assert!(!rest.contains("Second"), "{rest}");
    assert_eq!(page.log_in().status, 200, "other logins stay");
    let error = world.expect_failure(&["serve", "invite", "--revoke", "robot"]);
    assert!(error.contains("`robot` has no login"), "{error}");
}

#[test]
fn invitation_longer_than_a_month_is_refused() {
    let world = TestWorld::new();
    for time in ["99999h", "31d", "0s"] {
        let error = world.expect_failure(&["serve", "invite", "ann", "--valid", time]);
        assert!(error.contains("expected a length of time from `1s` to `30d`"), "{error}");
    }
}

#[test]
fn access_records_have_digests_and_no_secret() {
    let world = TestWorld::new();
    let page = ServedPage::new(&world, &[]);
    let token = ServedPage::create_token(&world, "look");
    let directory = world.directory.parent().unwrap().join("state/web");
    let mut files = 0;
    for file in std::fs::read_dir(&directory).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        assert!(!text.contains(&token) && !text.contains(&page.code), "{text}");
        files += 1;
    }
    assert_eq!(files, 2, "the records and their lock");
}

#[test]
fn unreadable_access_records_are_reported() {
    let world = TestWorld::new();
    let (mut said, stderr) = std::io::pipe().unwrap();
    let mut command = world.command(&["--json", "serve"]);
    command.stderr(stderr);
    let page = ServedPage::start(command);
    let token = ServedPage::create_token(&world, "look");
    let directory = world.directory.parent().unwrap().join("state/web");
    let files = std::fs::read_dir(&directory).unwrap().map(|file| file.unwrap().path());
    let records = files.into_iter().find(|file| file.extension().is_some_and(|end| end == "json")).unwrap();
    std::fs::write(&records, "{").unwrap();
    for _ in 0..2 {
        let answer = page.get("/api/now", &token);
        assert_eq!(answer.error(), (503, "access".to_owned()));
        let error = answer.json()["error"].to_string();
        assert!(error.contains(&format!("cannot read the records of logins `{}`", records.display())), "{error}");
        assert!(answer.json()["hint"].to_string().contains("remove the file"), "{}", answer.text);
    }
    assert_eq!(page.log_in().error(), (503, "access".to_owned()));
    drop(page);
    let mut log = String::new();
    said.read_to_string(&mut log).unwrap();
    assert_eq!(log.matches("error: cannot read the records of logins").count(), 1, "{log}");
    assert!(log.contains("hint: remove the file"), "{log}");
}

#[test]
fn request_under_foreign_host_is_refused() {
    let world = TestWorld::new();
    let page = ServedPage::new(&world, &[]);
    let send = |headers: &[&str]| {
        let headers: Vec<String> = headers.iter().map(|&header| header.to_owned()).collect();
        page.send_raw("GET /", &headers, "").status
    };
    let own = format!("Host: {}", page.host);
    assert_eq!(send(&[&own]), 200);
    assert_eq!(send(&[&format!("Host: localhost:{}", page.port())]), 200);
    assert_eq!(send(&["Host: evil.example"]), 421);
    assert_eq!(send(&[&format!("Host: evil.example:{}", page.port())]), 421);
    assert_eq!(send(&[&own, "Host: evil.example"]), 400);
    assert_eq!(send(&[]), 400);
}

#[test]
fn change_from_another_page_is_refused() {
    let world = TestWorld::new();
    let page = ServedPage::new(&world, &[]);
    let answer = page.log_in();
    let cookie = format!("Cookie: {}", answer.header("set-cookie").split(';').next().unwrap());
    let own_origin = format!("Origin: http://{}", page.host);
    let send = |headers: &[&str]| {
        let mut lines = vec![format!("Host: {}", page.host), cookie.clone()];
        lines.extend(headers.iter().map(|&header| header.to_owned()));
        let answer = page.send_raw("POST /api/tasks", &lines, r#"{"goal": "Mend the pump"}"#);
        assert_eq!(answer.header("access-control-allow-origin"), "");
        answer.status
    };
    assert_eq!(send(&[JSON_BODY, "Origin: http://evil.example"]), 403);
    assert_eq!(send(&[JSON_BODY, "Origin: null"]), 403);
    assert_eq!(send(&[JSON_BODY, &own_origin, "Sec-Fetch-Site: cross-site"]), 403);
    assert_eq!(send(&[JSON_BODY, &own_origin, "Sec-Fetch-Site: same-site"]), 403);
    assert_eq!(send(&[JSON_BODY]), 403, "a browser names the origin");
    assert_eq!(send(&["Content-Type: text/plain", &own_origin]), 415);
    assert_eq!(send(&["Content-Type: application/x-www-form-urlencoded", &own_origin]), 415);
    assert_eq!(world.json_lines(&["task", "list"]).len(), 0);
    assert_eq!(send(&[JSON_BODY, &own_origin, "Sec-Fetch-Site: same-origin"]), 200);
    assert_eq!(world.json_lines(&["task", "list"]).len(), 1);
}

#[test]
fn role_limits_the_requests_of_viewer() {
    let world = TestWorld::with_tasks(&["Mend the pump"]);
    let page = ServedPage::new(&world, &[]);
    let [look, answer, manage] = ["look", "answer", "manage"].map(|role| ServedPage::create_token(&world, role));
    for token in [&look, &answer, &manage] {
        assert_eq!(page.get("/api/tasks", token).json()["tasks"][0]["id"], "T1");
    }
    let question = json!({"subject": "T1", "answer": "continue"});
    assert_eq!(page.post("/api/answer", &look, &question).error(), (403, "role".to_owned()));
    let new = json!({"goal": "Paint it"});
    assert_eq!(page.post("/api/tasks", &answer, &new).error(), (403, "role".to_owned()));
    // The role counts before the path and the body.
    let wrong = json!({"autor": "me"});
    assert_eq!(page.post("/api/tasks", &answer, &wrong).error(), (403, "role".to_owned()));
    assert_eq!(page.post("/api/tasks/none/edit", &look, &wrong).error(), (403, "role".to_owned()));
    assert_eq!(page.post("/api/answer", &look, &wrong).error(), (403, "role".to_owned()));
    assert_eq!(page.post("/api/answer", "", &wrong).error(), (401, "not_logged_in".to_owned()));
    assert_eq!(page.post("/api/tasks", &manage, &new).json()["id"], "T2");
    let created = world.json_lines(&["events", "--type", "task_created"]);
    assert_eq!(created[1]["metadata"]["triggeredBy"], "robot", "{}", created[1]);
}

#[test]
fn large_body_and_unknown_field_are_refused() {
    let world = TestWorld::new();
    let page = ServedPage::new(&world, &[]);
    let token = ServedPage::create_token(&world, "manage");
    assert_eq!(page.post("/api/tasks", &token, &json!({"goal": "x".repeat(1024 * 1024)})).status, 413);
    let answer = page.post("/api/tasks", &token, &json!({"goal": "x", "autor": "me"}));
    assert_eq!(answer.status, 422, "{}", answer.text);
    assert!(answer.json()["cause"].to_string().contains("autor"), "{}", answer.text);
    assert_eq!(page.get("/api/nothing", &token).error(), (404, "not_found".to_owned()));
    assert_eq!(page.get("/api/tasks/T99", &token).status, 404);
    assert_eq!(page.get("/api/tasks?limit=many", &token).error(), (400, "usage".to_owned()));
}

#[test]
fn unknown_task_type_is_refused_with_known_types() {
    let world = create_agent_project("task_types: {product: {}, infra: {}}\n", "");
    world.run_ok(&["init"]);
    let page = ServedPage::new(&world, &[]);
    let token = ServedPage::create_token(&world, "manage");
    let refused = page.post("/api/tasks", &token, &json!({"goal": "Sell", "type": "prodct"}));
    assert_eq!(refused.error(), (422, "usage".to_owned()), "{}", refused.text);
    let said = refused.json()["error"].as_str().unwrap().to_owned();
    assert_eq!(said, "there is no type `prodct`; did you mean `product`? There are infra and product");
    let refused = page.post("/api/tasks", &token, &json!({"goal": "Sell", "type": "two words"}));
    assert_eq!(refused.error(), (422, "usage".to_owned()), "{}", refused.text);
    assert!(refused.json()["cause"].to_string().contains("two words"), "{}", refused.text);
    assert_eq!(page.post("/api/tasks", &token, &json!({"goal": "Sell", "type": "product"})).status, 200);
}

#[test]
fn page_may_run_its_own_script_only() {
    let world = TestWorld::new();
    let page = ServedPage::new(&world, &[]);
    for path in ["/", "/tasks/T1", "/answer"] {
        let answer = page.get(path, "");
        assert_eq!(answer.status, 200);
        let policy = answer.header("content-security-policy");
        for part in
            ["default-src 'none'", "script-src 'self';", "require-trusted-types-for 'script'", "frame-ancestors 'none'"]
        {
            assert!(policy.contains(part), "{policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        assert!(!answer.text.contains("<script>") && !answer.text.contains(" style="), "{}", answer.text);
    }
    assert_eq!(page.get("/", "").header("x-content-type-options"), "nosniff");
    assert_eq!(page.get("/", "").header("referrer-policy"), "no-referrer");
    assert_eq!(page.get("/api/now", "").header("cache-control"), "no-store");
}

#[test]
fn address_for_other_machines_needs_tls() {
    let world = TestWorld::new();
    let error = world.expect_failure(&["serve", "--listen", "0.0.0.0:0"]);
    assert!(error.contains("without TLS") && error.contains("--tls-cert"), "{error}");
    let error = world.expect_failure(&["serve", "--tls-cert", "a.pem", "--tls-key", "b.pem"]);
    assert!(error.contains("cannot use `a.pem`"), "{error}");
}

/// Returns a script that opens a connection as descriptor 3, and sends a command to the page.
fn write_request_script((address, port): (&str, &str), host: &str, token: &str) -> String {
    format!(
        "exec 3<>/dev/tcp/{address}/{port}; printf \"POST /api/tasks HTTP/1.0\\r\\nHost: {host}\\r\\n\
         Authorization: Bearer {token}\\r\\nContent-Type: application/json\\r\\nContent-Length: 14\\r\\n\\r\\n\
         {{\\\"goal\\\":\\\"own\\\"}}\" >&3"
    )
}

#[test]
fn request_of_agent_is_refused() {
    let world = create_agent_project("", "");
    world.run_ok(&["init"]);
    let page = ServedPage::new(&world, &[]);
    let token = ServedPage::create_token(&world, "manage");
    let send = write_request_script(("127.0.0.1", page.port()), &page.host, &token);
    let ends = "echo '<promise>COMPLETE</promise>'";
    world.write("agent.sh", format!("cat > prompt; env > variables; {send}; cat <&3 > answer; {ends}"));
    let ran = world.run(&["run", "Mend the pump", "--agent", "command:bash agent.sh"]);
    assert_eq!(ran.code, 0, "{ran}");
    let answer = world.read_file("answer");
    assert!(answer.starts_with("HTTP/1.0 403") && answer.contains("from an agent or a hook"), "{answer}");
    assert!(!world.read_file("variables").contains(&token));
    assert_eq!(world.json_lines(&["task", "list"]).iter().filter(|task| task["goal"] == "own").count(), 0);
}

#[test]
fn request_of_agent_is_refused_at_every_address_of_server() {
    for (listen, address) in [("0.0.0.0", "127.0.0.1"), ("[::]", "::1"), ("[::]", "127.0.0.1")] {
        let world = create_agent_project("", "");
        world.run_ok(&["init"]);
        let free = std::net::TcpListener::bind(format!("{listen}:0")).unwrap().local_addr().unwrap().port().to_string();
        let place = format!("{listen}:{free}");
        let _page = ServedPage::new(&world, &["--listen", &place, "--behind-proxy", "--host", "page.example"]);
        let token = ServedPage::create_token(&world, "manage");
        let send = write_request_script((address, &free), "page.example", &token);
        let ends = "echo '<promise>COMPLETE</promise>'";
        world.write("agent.sh", format!("cat > prompt; {send}; cat <&3 > answer; {ends}"));
        assert_eq!(world.run(&["run", "Mend the pump", "--agent", "command:bash agent.sh"]).code, 0);
        let answer = world.read_file("answer");
        let is_refused = answer.starts_with("HTTP/1.0 403") && answer.contains("from an agent or a hook");
        assert!(is_refused, "{listen} {address}: {answer}");
    }
}

/// An agent that closes its connection at once cannot be found any more, so a connection without an owner is refused.
#[test]
fn request_of_agent_that_does_not_wait_is_refused() {
    let world = create_agent_project("", "");
    world.run_ok(&["init"]);
    let page = ServedPage::new(&world, &[]);
    let token = ServedPage::create_token(&world, "manage");
    let send = write_request_script(("127.0.0.1", page.port()), &page.host, &token);
    world.write(
        "agent.sh",
        format!("cat > prompt; for n in 1 2 3 4 5; do {send}; exec 3>&-; done; echo '<promise>COMPLETE</promise>'"),
    );
    assert_eq!(world.run(&["run", "Mend the pump", "--agent", "command:bash agent.sh"]).code, 0);
    // The server answers one request after another of these, so this one comes last.
    assert_eq!(page.get("/api/tasks", &token).status, 200);
    assert_eq!(world.json_lines(&["task", "list"]).iter().filter(|task| task["goal"] == "own").count(), 0);
}

#[test]
fn secret_that_is_configured_later_is_masked() {
    let world = create_agent_project("", "echo 'the key is hunter2-abc'; echo '<promise>COMPLETE</promise>'");
    assert_eq!(world.run(crate::test_run::RUN).code, 0);
    world.write(".windlass/config.yaml", "secrets: [API_KEY]\n");
    let mut command = world.command(&["--json", "serve"]);
    command.env("API_KEY", "hunter2-abc");
    let page = ServedPage::start(command);
    let token = ServedPage::create_token(&world, "look");
    for path in ["/api/log", "/api/sessions/mend-the-pump-e01275de", "/api/why/mend-the-pump-e01275de"] {
        let answer = page.get(path, &token);
        assert_eq!(answer.status, 200, "{path}");
        assert!(answer.text.contains("the key is") && !answer.text.contains("hunter2-abc"), "{path}: {}", answer.text);
    }
    // An error may name what it was given.
    let error = page.get("/api/why/hunter2-abc", &token);
    assert!(error.status == 404 && !error.text.contains("hunter2-abc"), "{}", error.text);
}

#[test]
fn agent_cannot_invite_or_serve() {
    let world = create_agent_project(
        "",
        "for words in 'serve' 'serve invite me' 'serve question T1'; do windlass $words >> said 2>&1; done; \
         echo '<promise>COMPLETE</promise>'",
    )
    .with_windlass();
    world.run_ok(&["init"]);
    let _page = ServedPage::new(&world, &[]);
    assert_eq!(world.run(crate::test_run::RUN).code, 0);
    let said = world.read_file("said");
    assert_eq!(said.matches("only a person").count(), 3, "{said}");
}

#[test]
fn killed_server_sends_missed_events_after_restart() {
    let world = TestWorld::with_tasks(&["First"]);
    let mut page = ServedPage::new(&world, &[]);
    let token = ServedPage::create_token(&world, "look");
    let (port, head) = (page.port().to_owned(), page.get("/api/viewer", &token).json()["head"].as_u64().unwrap());
    page.send_signal(Signal::KILL);
    page.await_exit();
    world.run_ok(&["task", "add", "Second"]);
    let page = ServedPage::new(&world, &["--listen", &port]);
    let mut events = page.open_events(&token, head);
    world.run_ok(&["task", "add", "Third"]);
    let mut goals = Vec::new();
    let mut line = String::new();
    while goals.len() < 2 && events.read_line(&mut line).unwrap() > 0 {
        goals.extend(["Second", "Third"].into_iter().filter(|goal| line.contains(goal)));
        line.clear();
    }
    assert_eq!(goals, ["Second", "Third"]);
}

#[test]
fn second_server_is_refused_until_the_first_has_died() {
    let world = TestWorld::new();
    let mut page = ServedPage::new(&world, &[]);
    for words in [&["serve"][..], &["serve", "--listen", page.port()]] {
        let error = world.expect_failure(words);
        assert!(error.contains(&format!("another process serves it at http://{}\n", page.host)), "{error}");
    }
    assert!(world.run_ok(&["serve", "invite", "bob"]).contains(&page.host));
    page.send_signal(Signal::KILL);
    page.await_exit();
    let error = world.expect_failure(&["serve", "invite", "bob"]);
    assert!(error.contains("the page is not served now"), "{error}");
    let page = ServedPage::new(&world, &[]);
    assert!(world.run_ok(&["serve", "invite", "bob"]).contains(&page.host));
}

#[test]
fn browser_that_does_not_start_is_reported_with_address() {
    let world = TestWorld::new();
    let opener = world.program_directory().join("xdg-open");
    std::fs::write(&opener, "#!/bin/sh\nexit 3\n").unwrap();
    std::fs::set_permissions(&opener, std::fs::Permissions::from_mode(0o755)).unwrap();
    let (said, stderr) = std::io::pipe().unwrap();
    let mut command = world.command(&["--json", "serve", "--open"]);
    command.stderr(stderr);
    let page = ServedPage::start(command);
    let mut line = String::new();
    BufReader::new(said).read_line(&mut line).unwrap();
    let reason = "warning: no browser could be started: `xdg-open` ended with exit status: 3; open http://";
    assert!(line.starts_with(reason) && line.contains(&format!("{}/#code={}", page.host, page.code)), "{line}");
}

#[test]
fn server_ends_with_signal_and_keeps_its_port() {
    let world = TestWorld::new();
    let mut page = ServedPage::new(&world, &[]);
    let port = page.port().to_owned();
    page.send_signal(Signal::TERM);
    assert_eq!(page.await_exit(), Some(143));
    let error = world.expect_failure(&["serve", "invite", "ann"]);
    assert!(error.contains("the page is not served now"), "{error}");
    assert_eq!(ServedPage::new(&world, &[]).port(), port, "links stay valid");
}

#[test]
fn tls_server_answers_encrypted_requests() {
    let world = TestWorld::new();
    let made = std::process::Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"])
        .args([
            "-keyout",
            "key.pem",
            "-out",
            "cert.pem",
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=DNS:localhost",
        ])
        .current_dir(&world.directory)
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let page = ServedPage::new(&world, &["--tls-cert", "cert.pem", "--tls-key", "key.pem"]);
    let url = format!("https://localhost:{}/", page.port());
    let fetched = std::process::Command::new("curl")
        .args(["-sS", "-i", "--cacert", "cert.pem", &url])
        .current_dir(&world.directory)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&fetched.stdout).into_owned();
    assert!(text.contains("200 OK") && text.contains("strict-transport-security"), "{text} {fetched:?}");
    // Plain text at the same port gets no page.
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", page.port().parse().unwrap())).unwrap();
    write!(stream, "GET / HTTP/1.0\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(!String::from_utf8_lossy(&answer).contains("<html"), "{answer:?}");
}
