//! Accepted texts with their results, and refused ones with the reasons.

use proptest::prelude::*;

use super::{HookScript, InputChannel, ScriptValues, UnsafeTemplate};

const VALUES: ScriptValues<'static> = ScriptValues {
    session: "demo",
    iteration: "3",
    task_id: "T12",
    task_content: InputChannel::Variable,
    error: InputChannel::Variable,
};

#[track_caller]
fn check(text: &str, expected: &str) {
    let script = HookScript::parse(text).unwrap_or_else(|refused| panic!("{text}\n{refused}"));
    assert_eq!(script.text(), text);
    assert_eq!(script.fill_values(&VALUES), expected.replace('§', "${WINDLASS_ERROR}"), "{text}");
}

/// Checks that the last placeholder is refused, with these words in the reason.
#[track_caller]
fn check_refused(text: &str, why: &str) {
    let refused = HookScript::parse(text).expect_err(text);
    assert_eq!(refused.why, why, "{text}");
    assert_eq!(&text[refused.at.clone()], "{{error}}", "{text}");
    assert_eq!(refused.to_string(), format!("cannot put `{{{{error}}}}` {why}"));
}

#[track_caller]
fn check_lost(text: &str, what: &str) {
    check_refused(text, &format!("in a command with {what}: only plain commands are followed"));
}

#[test]
fn checked_values_are_put_in_as_they_are() {
    check("./done.sh {{session}} {{iteration}} {{task_id}}", "./done.sh demo 3 T12");
    check("echo '{{ session }}' \"{{iteration}}\" `x {{\ttask_id }}`", "echo 'demo' \"3\" `x T12`");
    check("cat <<{{session}}\n{{iteration}}\ndemo", "cat <<demo\n3\ndemo");
    check("{{session}}{{session}} \\{{iteration}} ${{session}}", "demodemo \\3 $demo");
    check("{{{session}}} {{{{iteration}}}}", "{demo} {{3}}");
}

#[test]
fn everything_else_stays() {
    for text in [
        "",
        "docker inspect --format '{{.State}}' box",
        "echo {{ .Error }} {{Error}} {{errors}} {{error} {error}} {{err\nor}} {{er ror}} {{}} {{ }} {{",
        "{{ error\n}}",
        "unclosed ' \" ` $( ${ <<EOF",
        "eval \"$X\" 'ü' \u{1}",
    ] {
        check(text, text);
    }
}

#[test]
fn free_text_is_a_quoted_reference() {
    check("echo {{error}}", "echo \"§\"");
    check("echo {{ error }} {{  error\t}}", "echo \"§\" \"§\"");
    check("echo {{task_content}}", "echo \"${WINDLASS_TASK_CONTENT}\"");
    check("echo \"it said: {{error}}!\"", "echo \"it said: §!\"");
    check("echo --message={{error}} a{{error}}b", "echo --message=\"§\" a\"§\"b");
    check("echo 'it said '{{error}}'!'", "echo 'it said '\"§\"'!'");
    check("echo \\\\{{error}} \"\\\\{{error}}\"", "echo \\\\\"§\" \"\\\\§\"");
    check("echo $X{{error}} \"$X{{error}}\" ${X}{{error}}", "echo $X\"§\" \"$X§\" ${X}\"§\"");
    check("echo {{{error}}} {a,{{error}}}", "echo {\"§\"} {a,\"§\"}");
    check("echo '{{.Error}}' {{error}} {{iteration}}", "echo '{{.Error}}' \"§\" 3");
    check("echo \"$(date)\" {{error}} $(date | cat)", "echo \"$(date)\" \"§\" $(date | cat)");
    check("echo {{error}} # not {{error}}, it's a comment", "echo \"§\" # not {{error}}, it's a comment");
    check("echo a#{{error}}", "echo a#\"§\"");
    check("text={{error}} notify", "text=\"§\" notify");
    check("text={{error}}; notify \"$(cat \"$text\")\"", "text=\"§\"; notify \"$(cat \"$text\")\"");
    check("text+={{error}}", "text+=\"§\"");
}

#[test]
fn free_text_is_accepted_in_arguments_of_all_kinds_of_commands() {
    for text in [
        "if true; then echo {{error}}; else ./notify {{error}}; fi",
        "while read -r line; do ./notify \"$line\" {{error}}; done < list",
        "{ echo {{error}}; } > log 2>&1",
        "(cd sub && ./notify {{error}}) || echo {{error}}",
        "! ./notify {{error}} &",
        "printf '%s\\n' {{error}} | tee -a log | ./notify",
        "printf -- '%5s %% %s' {{error}} {{error}}",
        "[ {{error}} = none ] || [ -n {{error}} ] && test ! \"{{error}}\" != x && test {{error}}",
        "sudo ./notify {{error}}",
        "timeout 10 env A=b B={{error}} ./notify {{error}}",
        "python3 notify.py {{error}}; python3.11 ./notify {{error}}; node x.js {{error}}; deno run x.ts {{error}}",
        "printf %s {{error}} | python3 -c 'import sys; sys.stdin.read()'",
        "echo it broke at {{error}}; printf '%s' {{error}} | sudo tee log",
        "sh -c 'printf %s \"$1\"' sh {{error}}; bash -ec 'true' {{error}}",
        "glab mr create --description {{error}}; curl --user-agent {{error}}; git push --dry-run origin {{error}}",
        "git commit -m {{error}} && git -C . log --grep {{error}}",
        "grep -r {{error}} . ; find . -name {{error}}",
        "bash ./build.sh || echo {{error}} | tee log; cat x | sh",
        "curl -d {{error}} \\\n  https://localhost",
        "2>log echo {{error}} 2>&1 >/dev/null",
        "~/bin/notify {{error}}; 'my notify' {{error}}; ./no\\ tify {{error}}",
        "echo {{session}} {{error}}; echo \"{{session}}\" x-{{task_id}}",
    ] {
        let script = HookScript::parse(text).unwrap_or_else(|refused| panic!("{text}\n{refused}"));
        assert!(!script.fill_values(&VALUES).contains("{{"), "{text}");
    }
}

#[test]
fn long_text_comes_from_a_file() {
    let values = ScriptValues { error: InputChannel::File, ..VALUES };
    let fill = |text| HookScript::parse(text).expect("is safe").fill_values(&values);
    assert_eq!(fill("echo {{error}}"), "echo \"$(cat \"$WINDLASS_ERROR_FILE\")\"");
    assert_eq!(fill("echo \"a {{error}}\""), "echo \"a $(cat \"$WINDLASS_ERROR_FILE\")\"");
    assert_eq!(fill("echo {{task_content}}"), "echo \"${WINDLASS_TASK_CONTENT}\"");
}

#[test]
fn free_text_is_refused_where_shell_evaluates_it() {
    let single = "in single quotes: nothing is filled in there";
    let substitution = "in `$( … )`: what is in it is a command of its own";
    let redirection = "in a redirection: the text would choose the file";
    let backslash = "right after a backslash: it would escape the reference";
    let dollar = "right after a `$`: together they mean something else";
    let command = "in the place of a command: the text would choose what runs";
    for (text, why) in [
        ("echo '{{error}}'", single),
        ("echo \"a\"'b {{error}}'", single),
        ("jq -n '{\"text\": \"{{error}}\"}'", single),
        ("echo $(echo {{error}})", substitution),
        ("echo \"$(echo \"{{error}}\")\"", substitution),
        ("echo > {{error}}", redirection),
        ("echo 2>>\"log-{{error}}\"", redirection),
        ("echo >&{{error}}", redirection),
        ("echo \\{{error}}", backslash),
        ("echo \"\\{{error}}\"", backslash),
        ("echo ${{error}}", dollar),
        ("echo \"${{error}}\"", dollar),
        ("{{error}}", command),
        ("x=1 {{error}}", command),
        ("true && \"{{error}}\" a", command),
        (">log {{error}}", command),
        ("if {{error}}; then true; fi", command),
        ("a{{error}}=b", command),
        ("a[{{error}}]=b", command),
        ("PATH={{error}} ls", "in `PATH`: this variable means something to the shell or to programs"),
        ("RANDOM={{error}}", "in `RANDOM`: this variable means something to the shell or to programs"),
        ("env LD_PRELOAD={{error}} ls", "in `LD_PRELOAD`: this variable means something to the shell or to programs"),
    ] {
        check_refused(text, why);
    }
}

#[test]
fn free_text_is_refused_for_evaluating_commands() {
    let runs = |name: &str| format!("in the arguments of `{name}`: it runs text as commands");
    let built_in = |name: &str| format!("in the arguments of `{name}`: the shell takes them for more than text");
    let code = |name: &str| format!("in the arguments of `{name}`: it may be taken for code");
    let program = |name: &str| format!("in the arguments of `{name}`: it may be taken for its program");
    for (text, why) in [
        ("eval {{error}}", runs("eval")),
        ("ev\\al \"echo {{error}}\"", runs("eval")),
        ("'eval' {{error}}", runs("eval")),
        ("sh -c \"echo {{error}}\"", runs("sh")),
        ("/bin/bash -c \"$x\" {{error}}", runs("bash")),
        ("sudo bash -c true {{error}}", runs("bash")),
        ("docker exec box {{error}}", runs("docker")),
        ("socat - {{error}}", runs("socat")),
        ("capsh -- -c {{error}}", runs("capsh")),
        ("docker exec box sh -c {{error}}", runs("sh")),
        ("x=1 sudo -u bob bash -c {{error}}", runs("bash")),
        ("find . -exec sh -c {{error}} \\;", runs("sh")),
        ("ssh host echo {{error}}", runs("ssh")),
        ("ls | xargs echo {{error}}", runs("xargs")),
        ("watch {{error}}", runs("watch")),
        ("make X={{error}}", runs("make")),
        ("sudo sqlite3 x.db {{error}}", runs("sqlite3")),
        (". {{error}}", built_in(".")),
        ("source ./x {{error}}", built_in("source")),
        ("trap \"echo {{error}}\" EXIT", built_in("trap")),
        ("alias x={{error}}", built_in("alias")),
        ("let x={{error}}", built_in("let")),
        ("declare -i x={{error}}", built_in("declare")),
        ("export X={{error}}", built_in("export")),
        ("command export X={{error}}", built_in("export")),
        ("read {{error}}", built_in("read")),
        ("unset {{error}}", built_in("unset")),
        ("set -- {{error}}", built_in("set")),
        ("exit {{error}}", built_in("exit")),
        ("python3 -c {{error}}", code("python3")),
        ("python -c 'import sys' {{error}}", code("python")),
        ("perl -e 'print' {{error}}", code("perl")),
        ("ruby -e {{error}}", code("ruby")),
        ("node --eval {{error}}", code("node")),
        ("node -p {{error}}", code("node")),
        ("php -r {{error}}", code("php")),
        ("lua5.4 -e {{error}}", code("lua5.4")),
        ("python3 {{error}}", code("python3")),
        ("python3 -m timeit {{error}}", code("python3")),
        ("deno run {{error}}", code("deno")),
        ("deno run -A {{error}}", code("deno")),
        ("bun run {{error}}", code("bun")),
        ("bun x {{error}}", code("bun")),
        ("bun x cowsay {{error}}", code("bun")),
        ("python3 -W ignore {{error}}", code("python3")),
        ("awk -v x={{error}} 1", program("awk")),
        ("sed s/x/{{error}}/", program("sed")),
        ("jq --arg x {{error}} .", program("jq")),
    ] {
        check_refused(text, &why);
    }
}

#[test]
fn free_text_depends_on_place_in_command() {
    let wrapped = |name: &str| format!("in the arguments of `{name}`: the programs that it starts are unknown");
    let piped = |name: &str| format!("in a pipe to `{name}`: it runs what it reads");
    let after = |option: &str, name: &str| format!("after `{option}` of `{name}`: it may be run as a command");
    let unknown = "in the arguments of a command that is known only when it runs".to_owned();
    let format = "in the format of `printf`: it would be read as one".to_owned();
    let test = "in this test: it may be taken for an operator or for arithmetic".to_owned();
    let command = "in the place of a command: the text would choose what runs".to_owned();
    for (text, why) in [
        ("printf {{error}}", format.clone()),
        ("printf \"{{error}}\\n\"", format.clone()),
        ("printf -v x {{error}}", format.clone()),
        ("printf %d {{error}}", format.clone()),
        ("printf $f {{error}}", format),
        ("[ -v {{error}} ]", test.clone()),
        ("test {{error}} -eq 1", test.clone()),
        ("[ {{error}} {{task_content}} ]", test.clone()),
        ("[ $x {{error}} ]", test.clone()),
        ("[ a = b -o {{error}} = c ]", test),
        ("$CMD {{error}}", unknown.clone()),
        ("\"$CMD\" {{error}}", unknown.clone()),
        ("{eval,x} {{error}}", unknown.clone()),
        ("$(which x) {{error}}", unknown.clone()),
        ("x{{session}} {{error}}", unknown),
        ("sudo -u bob ./notify {{error}}", wrapped("sudo")),
        ("timeout $N ./notify {{error}}", wrapped("timeout")),
        ("env -S {{error}}", wrapped("env")),
        ("sudo $CMD {{error}}", wrapped("sudo")),
        ("nohup {{error}}", command.clone()),
        ("timeout 5 env A=b {{error}}", command),
        ("find . -exec echo {{error}} \\;", after("-exec", "find")),
        ("git -c core.pager={{error}} log", after("-c", "git")),
        ("git rebase --exec={{error}}", after("--exec", "git")),
        ("git clone \"-ccore.sshCommand=echo {{error}}\" x", after("-c", "git")),
        ("git rebase \"-xecho {{error}}\"", after("-x", "git")),
        ("git difftool --extcmd={{error}}", after("--extcmd", "git")),
        ("git difftool --extcmd {{error}}", after("--extcmd", "git")),
        ("wget --execute={{error}}", after("--execute", "wget")),
        ("go vet -vettool={{error}}", after("-vettool", "go")),
        ("go run {{error}}", after("run", "go")),
        ("go run . {{error}}", after("run", "go")),
        ("git clone --upload-pack={{error}} x y", after("--upload-pack", "git")),
        ("git clone --upload-pack {{error}} x", after("--upload-pack", "git")),
        ("split --filter={{error}} x", after("--filter", "split")),
        ("sort --compress-program {{error}} x", after("--compress-program", "sort")),
        ("rg --pre {{error}} x", after("--pre", "rg")),
        ("windlass run --agent {{error}}", after("--agent", "windlass")),
        ("echo {{error}} | sh", piped("sh")),
        ("{ true; echo {{error}}; } | sudo bash -s", piped("bash")),
        ("(echo {{error}}) | while read -r x; do eval \"$x\"; done", piped("eval")),
        ("echo {{error}} | cat \"$(sh)\"", piped("sh")),
        ("if true; then echo {{error}}; fi |\n\n sh", piped("sh")),
        ("echo {{error}} | { cat; sh; }", piped("sh")),
        ("echo {{error}} | python3", piped("python3")),
        ("echo {{error}} | deno run -", piped("deno")),
        ("echo {{error}} | . /dev/stdin", piped(".")),
        ("echo {{error}} | sudo -s", piped("sudo")),
        ("echo {{error}} | chroot /box", piped("chroot")),
        ("echo {{error}} | sqlite3 x.db", piped("sqlite3")),
        ("echo {{error}} | \"$SHELL\"", piped("a command that is known only then")),
    ] {
        check_refused(text, &why);
    }
}

#[test]
fn options_are_known_by_the_end_of_their_names() {
    for text in [
        "git --no-pager log --grep {{error}}; git --no-pager commit -m {{error}}; git -c a.b=c commit -m {{error}}",
        "cargo test --package core -- {{error}}; dotnet test --filter {{error}}; git clone --filter=blob:none {{error}}",
        "notify --webhook \"$URL\" --text {{error}}; ./scripts/notify.sh --program windlass --message {{error}}",
        "./notify --command {{error}}; aws logs tail --filter-pattern x {{error}}; sort --compress-program=gzip {{error}}",
        "windlass run --agent codex {{error}}; find . -empty -name {{error}}; git commit -ccolor.ui=x {{error}}",
        "git log -Sx{{error}} -n5 {{error}} -- \"-cx{{error}}\"; grep -ex{{error}} log; mvn -Dtest={{error}}",
    ] {
        assert!(HookScript::parse(text).is_ok(), "{text}: {:?}", HookScript::parse(text));
    }
    for (text, option, name) in [
        ("split \"--filter={{error}}\" x", "--filter", "split"),
        ("split --\"filter\"={{error}} x", "--filter", "split"),
        ("git clone \"--upload-pack={{error}}\" a b", "--upload-pack", "git"),
        ("git clone '--upload-pack' {{error}} a b", "--upload-pack", "git"),
        ("/usr/bin/find . -execdir echo {{error}} \\;", "-execdir", "find"),
        ("windlass run \"--agent={{error}}\" x", "--agent", "windlass"),
        ("go build -toolexec {{error}}", "-toolexec", "go"),
    ] {
        check_refused(text, &format!("after `{option}` of `{name}`: it may be run as a command"));
    }
}

#[test]
fn programs_that_run_a_value_are_refused() {
    for text in [
        "git clone -u § a b",
        "git grep -O§ x",
        "man -P § ls",
        "docker-compose exec web §",
        "oc -n x exec p -- §",
        "adb shell §",
        "gtar -I § x",
        "gfind . -ok § x",
        "fdfind -x §",
        "R -e §",
        "gnuplot -e§",
        "duckdb -c §",
        "conda run §",
        "direnv exec . §",
        "mise exec -- §",
        "watchexec §",
        "xterm -e §",
        "ssh-agent §",
        "hatch run §",
        "ansible all -a §",
        "helm install --post-renderer §",
        "RUSTC_WRAPPER=§ cargo build",
        "CC=§ ./configure",
        "env SSH_ASKPASS=§ git push",
        "sh -c 'eval \"$1\"' sh §",
        "sh -c '\"$@\"' sh §",
        "sh -c 'exec $*' sh §",
        "sh -c '${1}' sh §",
        "sh -c 'sh -c \"$1\"' sh §",
        "sh -c 'echo \"$1\" | sh' sh §",
        "sh -c 'eval \"$(cat \"$1\")\"' sh §",
        "sh -c 'echo `eval \"$1\"`' sh §",
        "bash -c 'echo $(($1))' bash §",
        "bash -c 'echo ${!1}' bash §",
        "bash -c 'echo ${1@P}' bash §",
        "bash -c 'echo ${x:$1}' bash §",
        "bash -c '[[ $1 -eq 1 ]]' bash §",
        "bash -c 'echo $( [[ $1 -eq 1 ]] )' bash §",
        "bash -c 'bash <<< \"$1\"' bash §",
        "bash -c +x §",
        "find . §",
        "find . -- §",
        "gfind §",
        "find . -printf §",
        "sh -c 'find . \"$1\"' sh §",
        "sh -c 'find . -name \"$@\"' sh §",
        "sh -c 'git log $1' sh §",
    ] {
        let text = text.replace('§', "{{error}}");
        assert!(HookScript::parse(&text).is_err(), "{text}");
    }
    for text in [
        "echo the tests run into §; echo -e §; grep -e § log; grep -c § log; curl -x §",
        "windlass run §; cargo run -- §; gh run view §; ./notify run §; ./notify -c §; notify -c team -m §",
        "sh -c 'if true; then ./notify \"$@\" \"$(date)\"; fi' sh §; sh -c 'text=$1; ./notify \"${text}\"' sh §",
        "bash -c 'if true; then ./notify \"${1:-x}\" $# $?; fi' bash §;",
        "sh -c 'ls | awk '\\''{ print $1 }'\\''; ./notify \"$1\"' sh §; python3 notify.py --command §",
        "find . -iname §; find src/§ -newer \"§\"; sh -c 'find \"./$1\"' sh §",
        "error_command=§; ERROR_TEXT=§ ./notify",
    ] {
        let text = text.replace('§', "{{error}}");
        assert!(HookScript::parse(&text).is_ok(), "{text}: {:?}", HookScript::parse(&text));
    }
}

#[test]
fn commands_that_are_not_plain_are_refused() {
    let keyword = "`case`, `for`, `select`, `function`, `coproc`, `time` or `[[`";
    let document = "a here-document, `<( … )` or `>( … )`";
    let list = "a function, a list in parentheses or a pattern with them";
    let unclosed = "something that is not closed";
    let parameter = "`${ … }` with more in it than a name";
    let quotes = "`$'…'` or `$\"…\"`";
    let operator = "`&>`, `|&`, `;;` or `;&`";
    for (text, what) in [
        ("echo {{error}} 'a", unclosed),
        ("echo \"{{error}}", unclosed),
        ("echo {{error}} $(a", unclosed),
        ("(echo {{error}}", unclosed),
        ("{ echo {{error}}", unclosed),
        ("if true; then echo {{error}}", unclosed),
        ("echo {{error}} )", "a `)`, `}`, `fi` or `done` that nothing opened"),
        ("echo {{error}}; fi", "a `)`, `}`, `fi` or `done` that nothing opened"),
        ("echo `echo {{error}}`", "backticks"),
        ("echo \"`date`\" {{error}}", "backticks"),
        ("cat <<EOF\n{{error}}\nEOF", document),
        ("cat <<< {{error}}", document),
        ("cat <(ls) {{error}}", document),
        ("f() { eval \"$1\"; }; f {{error}}", list),
        ("x=(a b); echo {{error}}", list),
        ("(( {{error}} ))", "`((`"),
        ("echo $(( {{error}} + 1 ))", "arithmetic"),
        ("echo ${x:-{{error}}}", parameter),
        ("echo \"${x#{{error}}}\"", parameter),
        ("echo ${{{error}}}", parameter),
        ("echo ${!x} {{error}}", parameter),
        ("echo $'{{error}}'", quotes),
        ("echo $\"x\" {{error}}", quotes),
        ("echo $[1] {{error}}", "`$[ … ]`"),
        ("echo \"$[ {{error}} ]\"", "`$[ … ]`"),
        ("bash -c 'echo \"$[ $1 ]\"' x {{error}}", "`$[ … ]`"),
        ("[[ {{error}} -eq 1 ]]", keyword),
        ("for x in {{error}}; do echo; done", keyword),
        ("case x in {{error}}) true ;; esac", keyword),
        ("coproc sh; echo {{error}}", keyword),
        ("alias x=eval\nx {{error}}", "an alias or a declaration, which change what follows"),
        ("declare -i x; x={{error}}", "an alias or a declaration, which change what follows"),
        ("echo {{error}} &> log", operator),
        ("echo {{error}} |& cat", operator),
        ("echo $\\\n(x) {{error}}", "a backslash at the end of a line"),
        ("ev\\\nal {{error}}", "a backslash at the end of a line"),
        ("(\\\n(x={{error}}))", "a backslash at the end of a line that joins two halves"),
        ("echo $(date # x\n) {{error}}", "a comment within `$( … )`"),
        ("echo \\{{task_id}}\" {{error}}\"", "a name in braces right after a `\\` or a `$`"),
        ("echo {{task_id}}#' {{error}} '", "a name in braces right before a sign of the shell"),
        ("{{session}} {{error}}", "a name in braces in the place of a command"),
        ("> {{task_id}} echo . {{error}}", "a redirection that may be to nothing"),
        (">f } ; echo {{error}}", "a `)`, `}`, `fi` or `done` that nothing opened"),
        (">f { echo {{error}}; }", "a redirection before a word of the shell"),
    ] {
        check_lost(text, what);
    }
    let nested = |open: &str| format!("{}echo {{{{error}}}}{}", open.repeat(99_999), ")".repeat(99_999));
    check_lost(&nested("echo $( "), "so much nesting");
    assert!(HookScript::parse(&nested("( ")).is_ok());
}

#[test]
fn script_refusal_names_placeholder_and_suggests_alternative() {
    let refused = |text: &str| HookScript::parse(text).expect_err(text);
    let UnsafeTemplate { name, at, instead, .. } = refused("echo {{error}} '{{ task_content }}'");
    assert_eq!((name, at), ("task_content", 16..34));
    assert_eq!(instead, "write double quotes around it, or end the quotes before it: `'…'{{task_content}}'…'`");
    for (text, instead) in [
        ("sh -c {{error}}", "put the command in a script of its own, which reads \"$WINDLASS_ERROR\""),
        ("jq --arg x {{error}} .", "let it read the variable: `jq -n 'env.WINDLASS_ERROR'`"),
        ("sh -c 'echo $1' sh {{error}}", "write double quotes around it: \"$1\", \"$@\""),
        ("find {{error}}", "write it behind a test: `-name {{error}}`, or in a path: `./{{error}}`"),
        ("sh <<E\n{{error}}\nE", "put the command in a script of its own, which reads \"$WINDLASS_ERROR\""),
        ("[ -v {{error}} ]", "compare it as text: `[ {{error}} = … ]`"),
    ] {
        assert_eq!(refused(text).instead, instead, "{text}");
    }
}

proptest! {
    /// Without free text the scanner refuses nothing and, without placeholders, fills nothing.
    #[test]
    fn script_without_free_text_is_accepted_unchanged(text in "([a-z '\"`$(){}<>|&;#\\\\\n]|\\{\\{|\\}\\}|ü){0,40}") {
        let script = HookScript::parse(&text).expect("no free text");
        prop_assert_eq!(script.text(), &text);
        prop_assert_eq!(script.fill_values(&VALUES), text);
    }

    /// For any text around the placeholder, the scanner gives a result and loses no text.
    #[test]
    fn accepted_script_keeps_all_text_around_placeholder(before in "\\PC{0,20}", after in "[a-z '\"`$(){}<>|&;#\\\\\n]{0,20}") {
        let text = format!("{before}{{{{error}}}}{after}");
        if let Ok(script) = HookScript::parse(&text) {
            let filled = script.fill_values(&VALUES);
            let restored = filled.replace("\"${WINDLASS_ERROR}\"", "{{error}}").replace("${WINDLASS_ERROR}", "{{error}}");
            // A reference inside the author's quotes looks like one inside ours.
            prop_assert_eq!(restored, text.replace("\"{{error}}\"", "{{error}}"));
        }
    }
}
