//! Checks an expression before it is compiled: every name, filter, test and function must be known.
//!
//! minijinja can list undeclared names, but without their positions. It reports unknown filters and tests only when evaluation
//! reaches them, which for a condition may be weeks later. So this module walks the syntax tree.
//!
//! The language has no assignments (`set`, `with`), captures (`filter`, `set` blocks), methods and `~`: a few lines of these could
//! produce gigabytes, and conditions do not need them.

use std::ops::Range;

use minijinja::machinery::ast::{BinOp, BinOpKind, Call, CallArg, Expr, Filter, ForLoop, Spanned, Stmt, Test, Var};

use crate::bounds::MAX_FACTOR;
use crate::context::UsedNames;
use crate::error::{ExpressionError, span_range, truncate_line};
use crate::language::{FILTERS, FUNCTIONS, LOOP_FIELDS, MAPPABLE_FILTERS, TESTS};
use crate::names::ExpressionNames;
use crate::spelling::suggest_name;

type CheckResult = Result<(), ExpressionError>;

/// Walks a syntax tree and collects the names that it uses.
pub struct SyntaxChecker<'n, 'a> {
    names: &'n ExpressionNames,
    /// Variables of the enclosing loops, innermost last.
    variables: Vec<&'a str>,
    /// Whether the walk is inside the operand of a product.
    in_product: bool,
    pub used: UsedNames,
}

impl<'n, 'a> SyntaxChecker<'n, 'a> {
    pub fn new(names: &'n ExpressionNames) -> Self {
        Self { names, variables: Vec::new(), in_product: false, used: UsedNames::default() }
    }

    pub fn check_statement(&mut self, statement: &Stmt<'a>) -> CheckResult {
        match statement {
            Stmt::Template(template) => self.check_statements(&template.children),
            Stmt::EmitExpr(emitted) => self.check_expression(&emitted.expr),
            Stmt::EmitRaw(_) => Ok(()),
            Stmt::IfCond(choice) => {
                self.check_expression(&choice.expr)?;
                self.check_statements(&choice.true_body)?;
                self.check_statements(&choice.false_body)
            }
            Stmt::ForLoop(each) => self.check_for_loop(each),
            Stmt::Set(it) => Err(absent_statement_error("set", span_range(it.span()))),
            Stmt::SetBlock(it) => Err(absent_statement_error("set", span_range(it.span()))),
            Stmt::WithBlock(it) => Err(absent_statement_error("with", span_range(it.span()))),
            Stmt::AutoEscape(it) => Err(absent_statement_error("autoescape", span_range(it.span()))),
            Stmt::FilterBlock(it) => Err(absent_statement_error("filter", span_range(it.span()))),
            Stmt::Do(it) => Err(absent_statement_error("do", span_range(it.span()))),
        }
    }

    fn check_statements(&mut self, statements: &[Stmt<'a>]) -> CheckResult {
        statements.iter().try_for_each(|statement| self.check_statement(statement))
    }

    fn check_for_loop(&mut self, each: &ForLoop<'a>) -> CheckResult {
        self.check_expression(&each.iter)?;
        let outside = self.variables.len();
        self.declare_variables(&each.target);
        each.filter_expr.iter().try_for_each(|condition| self.check_expression(condition))?;
        self.variables.push("loop");
        self.check_statements(&each.body)?;
        self.variables.truncate(outside);
        self.check_statements(&each.else_body)
    }

    fn declare_variables(&mut self, target: &Expr<'a>) {
        match target {
            Expr::Var(variable) => self.variables.push(variable.id),
            Expr::List(list) => list.items.iter().for_each(|target| self.declare_variables(target)),
            Expr::Tuple(tuple) => tuple.items.iter().for_each(|target| self.declare_variables(target)),
            _ => {}
        }
    }

    pub fn check_expression(&mut self, expression: &Expr<'a>) -> CheckResult {
        match expression {
            Expr::Const(_) => Ok(()),
            Expr::Var(_) | Expr::GetAttr(_) | Expr::GetItem(_) | Expr::Slice(_) => self.check_name_path(expression),
            Expr::UnaryOp(it) => self.check_expression(&it.expr),
            Expr::BinOp(it) => self.check_operation(it),
            Expr::Compare(it) => {
                self.check_expression(&it.expr)?;
                it.ops.iter().try_for_each(|operation| self.check_expression(&operation.expr))
            }
            Expr::IfExpr(it) => {
                self.check_expression(&it.test_expr)?;
                self.check_expression(&it.true_expr)?;
                self.check_optional(it.false_expr.as_ref())
            }
            Expr::Filter(it) => self.check_filter_call(it),
            Expr::Test(it) => self.check_test_call(it),
            Expr::Call(it) => self.check_function_call(it),
            Expr::List(it) => self.check_expressions(&it.items),
            Expr::Tuple(it) => self.check_expressions(&it.items),
            Expr::Map(it) => {
                self.check_expressions(&it.keys)?;
                self.check_expressions(&it.values)
            }
        }
    }

    fn check_expressions(&mut self, expressions: &[Expr<'a>]) -> CheckResult {
        expressions.iter().try_for_each(|expression| self.check_expression(expression))
    }

    fn check_optional(&mut self, expression: Option<&Expr<'a>>) -> CheckResult {
        expression.map_or(Ok(()), |expression| self.check_expression(expression))
    }

    /// Checks a name and the constant fields below it.
    fn check_name_path(&mut self, expression: &Expr<'a>) -> CheckResult {
        let (mut fields, mut inner) = (Vec::new(), expression);
        let root = loop {
            match inner {
                Expr::Var(root) => break root,
                Expr::GetAttr(it) => {
                    fields.push((it.name.to_owned(), span_range(it.span()).end));
                    inner = &it.expr;
                }
                Expr::GetItem(it) => {
                    match constant_text(&it.subscript_expr) {
                        Some(name) => fields.push((name, span_range(it.span()).end)),
                        None => {
                            self.check_expression(&it.subscript_expr)?;
                            fields.clear();
                        }
                    }
                    inner = &it.expr;
                }
                Expr::Slice(it) => {
                    if let Some(step) = &it.step {
                        // With a negative step minijinja reaches beyond an empty list.
                        return Err(ExpressionError::new("a slice has no step").with_range(span_range(step.span())));
                    }
                    [&it.start, &it.stop].into_iter().try_for_each(|part| self.check_optional(part.as_ref()))?;
                    fields.clear();
                    inner = &it.expr;
                }
                other => return self.check_expression(other),
            }
        };
        fields.reverse();
        self.check_name(root, &fields)
    }

    /// Checks a name. `fields` are the parts after it, each with the offset of its end.
    fn check_name(&mut self, root: &Spanned<Var<'a>>, fields: &[(String, usize)]) -> CheckResult {
        let start = span_range(root.span()).start;
        if self.variables.contains(&root.id) {
            return match fields.first() {
                Some((field, end)) if root.id == "loop" && !LOOP_FIELDS.contains(&field.as_str()) => {
                    Err(unknown_name_error("name", &format!("loop.{field}"), start..*end)
                        .with_suggestion(suggest_name(&["loop"], field, LOOP_FIELDS)))
                }
                _ => Ok(()),
            };
        }
        let path: Vec<_> = [root.id].into_iter().chain(fields.iter().map(|(field, _)| field.as_str())).collect();
        let Err(known) = self.names.check_known_path(&path) else {
            self.used.record_path(&path);
            return Ok(());
        };
        let end = known.checked_sub(1).map_or_else(|| span_range(root.span()).end, |field| fields[field].1);
        let wrong = &path[..=known];
        Err(unknown_name_error("name", &wrong.join("."), start..end).with_suggestion(self.names.suggest_path(wrong)))
    }

    fn check_operation(&mut self, it: &Spanned<BinOp<'a>>) -> CheckResult {
        match it.op {
            BinOpKind::Concat => {
                let problem = ExpressionError::new("`~` is not part of the language").with_range(span_range(it.span()));
                return Err(problem.with_suggestion("in a template, write the two one after the other"));
            }
            BinOpKind::Mul => return self.check_product(it),
            _ => {}
        }
        self.check_expression(&it.left)?;
        self.check_expression(&it.right)
    }

    fn check_product(&mut self, it: &Spanned<BinOp<'a>>) -> CheckResult {
        let other = match (is_bounded_factor(&it.left), is_bounded_factor(&it.right)) {
            (true, _) => &it.right,
            (false, true) => &it.left,
            (false, false) => {
                let message = format!("one side of `*` must be a number, at most {MAX_FACTOR}");
                return Err(ExpressionError::new(message).with_range(span_range(it.span())));
            }
        };
        if self.in_product {
            return Err(ExpressionError::new("a product cannot be multiplied again").with_range(span_range(it.span())));
        }
        self.in_product = true;
        self.check_expression(other)?;
        self.in_product = false;
        Ok(())
    }

    fn check_filter_call(&mut self, it: &Spanned<Filter<'a>>) -> CheckResult {
        if !FILTERS.contains(&it.name) {
            return Err(unknown_name_error("filter", it.name, name_range(it.name, span_range(it.span())))
                .with_suggestion(suggest_name(&[], it.name, FILTERS)));
        }
        let at = span_range(it.span());
        match it.name {
            "map" => {
                it.args.iter().take(1).try_for_each(|name| check_applied_name("filter", name, MAPPABLE_FILTERS, &at))?
            }
            "select" | "reject" => {
                it.args.iter().take(1).try_for_each(|name| check_applied_name("test", name, TESTS, &at))?
            }
            "selectattr" | "rejectattr" => {
                it.args.iter().skip(1).take(1).try_for_each(|name| check_applied_name("test", name, TESTS, &at))?;
            }
            _ => {}
        }
        self.check_optional(it.expr.as_ref())?;
        self.check_arguments(&it.args, at)
    }

    fn check_test_call(&mut self, it: &Spanned<Test<'a>>) -> CheckResult {
        let at = span_range(it.span());
        if !TESTS.contains(&it.name) {
            return Err(unknown_name_error("test", it.name, name_range(it.name, at)).with_suggestion(suggest_name(
                &[],
                it.name,
                TESTS,
            )));
        }
        self.check_expression(&it.expr)?;
        self.check_arguments(&it.args, at)
    }

    fn check_function_call(&mut self, it: &Spanned<Call<'a>>) -> CheckResult {
        let at = span_range(it.span());
        match &it.expr {
            Expr::Var(function) if FUNCTIONS.contains(&function.id) => self.check_arguments(&it.args, at),
            Expr::Var(function) => {
                let problem = unknown_name_error("function", function.id, span_range(function.span()));
                Err(problem.with_suggestion(format!("the only function is `range`; {FILTER_HINT}")))
            }
            Expr::GetAttr(method) => {
                let problem =
                    ExpressionError::new(format!("values have no methods: `{}`", truncate_line(method.name, 60)));
                Err(problem.with_range(at).with_suggestion(FILTER_HINT))
            }
            _ => Err(ExpressionError::new("only functions can be called").with_range(at)),
        }
    }

    fn check_arguments(&mut self, arguments: &[CallArg<'a>], at: Range<usize>) -> CheckResult {
        arguments.iter().try_for_each(|argument| match argument {
            CallArg::Pos(value) | CallArg::Kwarg(_, value) => self.check_expression(value),
            CallArg::PosSplat(_) | CallArg::KwargSplat(_) => {
                Err(ExpressionError::new("arguments are written one by one").with_range(at.clone()))
            }
        })
    }
}

/// Checks the filter or test that another filter applies. It must be a constant, so that it can be checked.
fn check_applied_name(what: &str, name: &CallArg<'_>, known: &[&'static str], at: &Range<usize>) -> CheckResult {
    let CallArg::Pos(name) = name else { return Ok(()) };
    match constant_text(name) {
        Some(name) if known.contains(&name.as_str()) => Ok(()),
        Some(unknown_name) => {
            let problem = unknown_name_error(what, &unknown_name, span_range(name.span()));
            Err(problem.with_suggestion(suggest_name(&[], &unknown_name, known)))
        }
        None => Err(ExpressionError::new(format!("the name of the {what} must be written out")).with_range(at.clone())),
    }
}

fn constant_text(expression: &Expr<'_>) -> Option<String> {
    match expression {
        Expr::Const(constant) => constant.value.as_str().map(str::to_owned),
        _ => None,
    }
}

fn is_bounded_factor(expression: &Expr<'_>) -> bool {
    let number = match expression {
        Expr::Const(constant) => &constant.value,
        _ => return false,
    };
    number.is_number() && number.as_i64().is_none_or(|number| number <= MAX_FACTOR)
}

/// Returns the range of a name that begins a longer part of the text.
fn name_range(name: &str, at: Range<usize>) -> Range<usize> {
    at.start..at.start + name.len()
}

fn unknown_name_error(what: &str, name: &str, at: Range<usize>) -> ExpressionError {
    ExpressionError::new(format!("unknown {what} `{}`", truncate_line(name, 60))).with_range(at)
}

fn absent_statement_error(statement: &str, at: Range<usize>) -> ExpressionError {
    ExpressionError::new(format!("`{statement}` is not part of the language"))
        .with_range(name_range(statement, at))
        .with_suggestion(STATEMENT_HINT)
}

/// Hint for a function or a method.
const FILTER_HINT: &str = "write a filter, as in `task.labels | length`; docs/reference/expressions.md lists them";
/// Hint for an unsupported statement.
const STATEMENT_HINT: &str = "known here: `if`, `for`";
