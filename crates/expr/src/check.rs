//! Checks an expression before it is compiled: every name, filter, test and function must be known.
//!
//! minijinja can list undeclared names, but without their positions. It reports unknown filters and tests only when evaluation
//! reaches them, which for a condition may be weeks later. So this module walks the syntax tree.
//!
//! The language has no assignments (`set`, `with`), captures (`filter`, `set` blocks), methods and `~`: a few lines of these could
//! produce gigabytes, and conditions do not need them.

use std::ops::Range;

use minijinja::machinery::ast::{BinOp, BinOpKind, Call, CallArg, Expr, Filter, ForLoop, Spanned, Stmt, Test, Var};

use crate::bounds::FACTOR;
use crate::context::Used;
use crate::error::{ExpressionError, cut, range};
use crate::language::{FILTERS, FUNCTIONS, LOOP, MAPPED, TESTS};
use crate::names::Names;
use crate::spelling::suggest_name;

type Checked = Result<(), ExpressionError>;

/// Walks a syntax tree and collects the names that it uses.
pub struct Check<'n, 'a> {
    names: &'n Names,
    /// Variables of the enclosing loops, innermost last.
    variables: Vec<&'a str>,
    /// Whether the walk is inside the operand of a product.
    in_product: bool,
    pub used: Used,
}

impl<'n, 'a> Check<'n, 'a> {
    pub fn new(names: &'n Names) -> Self {
        Self { names, variables: Vec::new(), in_product: false, used: Used::default() }
    }

    pub fn statement(&mut self, statement: &Stmt<'a>) -> Checked {
        match statement {
            Stmt::Template(template) => self.statements(&template.children),
            Stmt::EmitExpr(emitted) => self.expression(&emitted.expr),
            Stmt::EmitRaw(_) => Ok(()),
            Stmt::IfCond(choice) => {
                self.expression(&choice.expr)?;
                self.statements(&choice.true_body)?;
                self.statements(&choice.false_body)
            }
            Stmt::ForLoop(each) => self.each(each),
            Stmt::Set(it) => Err(absent("set", range(it.span()))),
            Stmt::SetBlock(it) => Err(absent("set", range(it.span()))),
            Stmt::WithBlock(it) => Err(absent("with", range(it.span()))),
            Stmt::AutoEscape(it) => Err(absent("autoescape", range(it.span()))),
            Stmt::FilterBlock(it) => Err(absent("filter", range(it.span()))),
            Stmt::Do(it) => Err(absent("do", range(it.span()))),
        }
    }

    fn statements(&mut self, statements: &[Stmt<'a>]) -> Checked {
        statements.iter().try_for_each(|statement| self.statement(statement))
    }

    fn each(&mut self, each: &ForLoop<'a>) -> Checked {
        self.expression(&each.iter)?;
        let outside = self.variables.len();
        self.declare(&each.target);
        each.filter_expr.iter().try_for_each(|condition| self.expression(condition))?;
        self.variables.push("loop");
        self.statements(&each.body)?;
        self.variables.truncate(outside);
        self.statements(&each.else_body)
    }

    fn declare(&mut self, target: &Expr<'a>) {
        match target {
            Expr::Var(variable) => self.variables.push(variable.id),
            Expr::List(list) => list.items.iter().for_each(|target| self.declare(target)),
            Expr::Tuple(tuple) => tuple.items.iter().for_each(|target| self.declare(target)),
            _ => {}
        }
    }

    pub fn expression(&mut self, expression: &Expr<'a>) -> Checked {
        match expression {
            Expr::Const(_) => Ok(()),
            Expr::Var(_) | Expr::GetAttr(_) | Expr::GetItem(_) | Expr::Slice(_) => self.path(expression),
            Expr::UnaryOp(it) => self.expression(&it.expr),
            Expr::BinOp(it) => self.operation(it),
            Expr::Compare(it) => {
                self.expression(&it.expr)?;
                it.ops.iter().try_for_each(|operation| self.expression(&operation.expr))
            }
            Expr::IfExpr(it) => {
                self.expression(&it.test_expr)?;
                self.expression(&it.true_expr)?;
                self.optional(it.false_expr.as_ref())
            }
            Expr::Filter(it) => self.filter(it),
            Expr::Test(it) => self.test(it),
            Expr::Call(it) => self.call(it),
            Expr::List(it) => self.expressions(&it.items),
            Expr::Tuple(it) => self.expressions(&it.items),
            Expr::Map(it) => {
                self.expressions(&it.keys)?;
                self.expressions(&it.values)
            }
        }
    }

    fn expressions(&mut self, expressions: &[Expr<'a>]) -> Checked {
        expressions.iter().try_for_each(|expression| self.expression(expression))
    }

    fn optional(&mut self, expression: Option<&Expr<'a>>) -> Checked {
        expression.map_or(Ok(()), |expression| self.expression(expression))
    }

    /// Checks a name and the constant fields below it.
    fn path(&mut self, expression: &Expr<'a>) -> Checked {
        let (mut fields, mut inner) = (Vec::new(), expression);
        let root = loop {
            match inner {
                Expr::Var(root) => break root,
                Expr::GetAttr(it) => {
                    fields.push((it.name.to_owned(), range(it.span()).end));
                    inner = &it.expr;
                }
                Expr::GetItem(it) => {
                    match constant_text(&it.subscript_expr) {
                        Some(name) => fields.push((name, range(it.span()).end)),
                        None => {
                            self.expression(&it.subscript_expr)?;
                            fields.clear();
                        }
                    }
                    inner = &it.expr;
                }
                Expr::Slice(it) => {
                    if let Some(step) = &it.step {
                        // With a negative step minijinja reaches beyond an empty list.
                        return Err(ExpressionError::new("a slice has no step").at(range(step.span())));
                    }
                    [&it.start, &it.stop].into_iter().try_for_each(|part| self.optional(part.as_ref()))?;
                    fields.clear();
                    inner = &it.expr;
                }
                other => return self.expression(other),
            }
        };
        fields.reverse();
        self.name(root, &fields)
    }

    /// Checks a name. `fields` are the parts after it, each with the offset of its end.
    fn name(&mut self, root: &Spanned<Var<'a>>, fields: &[(String, usize)]) -> Checked {
        let start = range(root.span()).start;
        if self.variables.contains(&root.id) {
            return match fields.first() {
                Some((field, end)) if root.id == "loop" && !LOOP.contains(&field.as_str()) => Err(unknown(
                    "name",
                    &format!("loop.{field}"),
                    start..*end,
                )
                .suggest(suggest_name(&["loop"], field, LOOP))),
                _ => Ok(()),
            };
        }
        let path: Vec<_> = [root.id].into_iter().chain(fields.iter().map(|(field, _)| field.as_str())).collect();
        let Err(known) = self.names.known_part(&path) else {
            self.used.note(&path);
            return Ok(());
        };
        let end = known.checked_sub(1).map_or_else(|| range(root.span()).end, |field| fields[field].1);
        let wrong = &path[..=known];
        Err(unknown("name", &wrong.join("."), start..end).suggest(self.names.suggestion(wrong)))
    }

    fn operation(&mut self, it: &Spanned<BinOp<'a>>) -> Checked {
        match it.op {
            BinOpKind::Concat => {
                let problem = ExpressionError::new("`~` is not part of the language").at(range(it.span()));
                return Err(problem.suggest("in a template, write the two one after the other"));
            }
            BinOpKind::Mul => return self.product(it),
            _ => {}
        }
        self.expression(&it.left)?;
        self.expression(&it.right)
    }

    fn product(&mut self, it: &Spanned<BinOp<'a>>) -> Checked {
        let other = match (is_factor(&it.left), is_factor(&it.right)) {
            (true, _) => &it.right,
            (false, true) => &it.left,
            (false, false) => {
                let message = format!("one side of `*` must be a number, at most {FACTOR}");
                return Err(ExpressionError::new(message).at(range(it.span())));
            }
        };
        if self.in_product {
            return Err(ExpressionError::new("a product cannot be multiplied again").at(range(it.span())));
        }
        self.in_product = true;
        self.expression(other)?;
        self.in_product = false;
        Ok(())
    }

    fn filter(&mut self, it: &Spanned<Filter<'a>>) -> Checked {
        if !FILTERS.contains(&it.name) {
            return Err(unknown("filter", it.name, named(it.name, range(it.span()))).suggest(suggest_name(
                &[],
                it.name,
                FILTERS,
            )));
        }
        let at = range(it.span());
        match it.name {
            "map" => it.args.iter().take(1).try_for_each(|name| applied("filter", name, MAPPED, &at))?,
            "select" | "reject" => it.args.iter().take(1).try_for_each(|name| applied("test", name, TESTS, &at))?,
            "selectattr" | "rejectattr" => {
                it.args.iter().skip(1).take(1).try_for_each(|name| applied("test", name, TESTS, &at))?;
            }
            _ => {}
        }
        self.optional(it.expr.as_ref())?;
        self.arguments(&it.args, at)
    }

    fn test(&mut self, it: &Spanned<Test<'a>>) -> Checked {
        let at = range(it.span());
        if !TESTS.contains(&it.name) {
            return Err(unknown("test", it.name, named(it.name, at)).suggest(suggest_name(&[], it.name, TESTS)));
        }
        self.expression(&it.expr)?;
        self.arguments(&it.args, at)
    }

    fn call(&mut self, it: &Spanned<Call<'a>>) -> Checked {
        let at = range(it.span());
        match &it.expr {
            Expr::Var(function) if FUNCTIONS.contains(&function.id) => self.arguments(&it.args, at),
            Expr::Var(function) => {
                let problem = unknown("function", function.id, range(function.span()));
                Err(problem.suggest(format!("the only function is `range`; {FILTER_HINT}")))
            }
            Expr::GetAttr(method) => {
                let problem = ExpressionError::new(format!("values have no methods: `{}`", cut(method.name, 60)));
                Err(problem.at(at).suggest(FILTER_HINT))
            }
            _ => Err(ExpressionError::new("only functions can be called").at(at)),
        }
    }

    fn arguments(&mut self, arguments: &[CallArg<'a>], at: Range<usize>) -> Checked {
        arguments.iter().try_for_each(|argument| match argument {
            CallArg::Pos(value) | CallArg::Kwarg(_, value) => self.expression(value),
            CallArg::PosSplat(_) | CallArg::KwargSplat(_) => {
                Err(ExpressionError::new("arguments are written one by one").at(at.clone()))
            }
        })
    }
}

/// Checks the filter or test that another filter applies. It must be a constant, so that it can be checked.
fn applied(what: &str, name: &CallArg<'_>, known: &[&'static str], at: &Range<usize>) -> Checked {
    let CallArg::Pos(name) = name else { return Ok(()) };
    match constant_text(name) {
        Some(name) if known.contains(&name.as_str()) => Ok(()),
        Some(unknown_name) => {
            let problem = unknown(what, &unknown_name, range(name.span()));
            Err(problem.suggest(suggest_name(&[], &unknown_name, known)))
        }
        None => Err(ExpressionError::new(format!("the name of the {what} must be written out")).at(at.clone())),
    }
}

fn constant_text(expression: &Expr<'_>) -> Option<String> {
    match expression {
        Expr::Const(constant) => constant.value.as_str().map(str::to_owned),
        _ => None,
    }
}

fn is_factor(expression: &Expr<'_>) -> bool {
    let number = match expression {
        Expr::Const(constant) => &constant.value,
        _ => return false,
    };
    number.is_number() && number.as_i64().is_none_or(|number| number <= FACTOR)
}

/// Returns the range of a name that begins a longer part of the text.
fn named(name: &str, at: Range<usize>) -> Range<usize> {
    at.start..at.start + name.len()
}

fn unknown(what: &str, name: &str, at: Range<usize>) -> ExpressionError {
    ExpressionError::new(format!("unknown {what} `{}`", cut(name, 60))).at(at)
}

fn absent(statement: &str, at: Range<usize>) -> ExpressionError {
    ExpressionError::new(format!("`{statement}` is not part of the language"))
        .at(named(statement, at))
        .suggest(STATEMENTS)
}

/// Hint for a function or a method.
const FILTER_HINT: &str = "write a filter, as in `task.labels | length`; docs/configuration.md lists them";
/// Hint for an unsupported statement.
const STATEMENTS: &str = "known here: `if`, `for`";
