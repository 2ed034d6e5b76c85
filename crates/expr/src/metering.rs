//! Marks in a checked expression: filters that charge for the operands of operators (`cost`). The operators are minijinja's own
//! and charge nothing.
//!
//! ```text
//! a + b == c[i]      a|_weighed(2) + b|_weighed(2) == (c|_counted())[i]|_weighed(1)
//! a.b.c is defined   a|_field("b")|_field("c") is defined
//! ```
//!
//! A filter binds more tightly than any operator, so a mark directly follows its operand in every context. A mark ends in a
//! bracket, so the next word may directly follow it: `'a'in b`. The result of an operator is no longer than its operands
//! together, so only operands need marks. Each mark holds the number of nested operators that read the operand or a result made
//! from it.

use std::fmt::Write;
use std::ops::Range;

use minijinja::machinery::ast::{BinOp, BinOpKind, CallArg, CompareOpKind, Expr, Filter, Spanned, Stmt, Test};

use crate::error::span_range;

/// Returns the text of an expression with marks.
pub fn mark_expression(text: &str, tree: &Expr<'_>) -> String {
    let mut marks = MeteringMarks { text, edits: Vec::new() };
    marks.mark_operand(tree, 0);
    marks.apply_edits()
}

/// Returns the text of a template with marks.
pub fn mark_template(text: &str, tree: &Stmt<'_>) -> String {
    let mut marks = MeteringMarks { text, edits: Vec::new() };
    marks.mark_statement(tree);
    marks.apply_edits()
}

struct MeteringMarks<'t> {
    text: &'t str,
    /// Replaced ranges, each with its new text.
    edits: Vec<(Range<usize>, String)>,
}

impl MeteringMarks<'_> {
    fn apply_edits(mut self) -> String {
        self.edits.sort_by_key(|(at, _)| at.start);
        let (mut text, mut from) = (String::with_capacity(self.text.len() * 2), 0);
        for (at, mark) in &self.edits {
            text.push_str(&self.text[from..at.start]);
            text.push_str(mark);
            from = at.end;
        }
        text.push_str(&self.text[from..]);
        text
    }

    fn insert_mark(&mut self, at: usize, mark: impl Into<String>) {
        self.edits.push((at..at, mark.into()));
    }

    fn mark_statement(&mut self, statement: &Stmt<'_>) {
        match statement {
            Stmt::Template(template) => template.children.iter().for_each(|child| self.mark_statement(child)),
            Stmt::EmitExpr(emitted) => self.mark_operand(&emitted.expr, 0),
            Stmt::IfCond(choice) => {
                self.mark_operand(&choice.expr, 0);
                choice.true_body.iter().chain(&choice.false_body).for_each(|child| self.mark_statement(child));
            }
            Stmt::ForLoop(each) => {
                self.mark_operand(&each.iter, 1);
                each.filter_expr.iter().for_each(|condition| self.mark_operand(condition, 0));
                each.body.iter().chain(&each.else_body).for_each(|child| self.mark_statement(child));
            }
            _ => {}
        }
    }

    /// Marks an operand that `times` operators read.
    fn mark_operand(&mut self, expression: &Expr<'_>, times: u64) {
        match expression {
            Expr::Const(it) if it.value.as_str().is_none() => {}
            Expr::Const(it) => self.mark_weighed(span_range(it.span()).end, times),
            Expr::Var(it) => self.mark_weighed(span_range(it.span()).end, times),
            Expr::GetAttr(_) | Expr::GetItem(_) | Expr::Slice(_) => {
                self.mark_lookup_path(expression, 0);
                self.mark_weighed(span_range(expression.span()).end, times);
            }
            Expr::Call(it) => {
                self.mark_arguments(&it.args, 1);
                self.mark_weighed(span_range(it.span()).end, times);
            }
            Expr::Filter(it) => {
                self.mark_filter(it);
                self.mark_weighed(span_range(it.span()).end, times);
            }
            Expr::Test(it) => self.mark_test(it),
            Expr::List(it) => it.items.iter().for_each(|item| self.mark_operand(item, times)),
            Expr::Tuple(it) => it.items.iter().for_each(|item| self.mark_operand(item, times)),
            Expr::Map(it) => it.keys.iter().chain(&it.values).for_each(|item| self.mark_operand(item, times)),
            Expr::UnaryOp(it) => self.mark_operand(&it.expr, 0),
            Expr::BinOp(it) => self.mark_operation(it, times),
            Expr::Compare(it) => {
                let operands = || std::iter::once(&it.expr).chain(it.ops.iter().map(|other| &other.expr));
                let is_order = it.ops.iter().all(|other| is_order_comparison(other.op));
                let literal = if is_order { find_literal_kind(operands()) } else { None };
                operands().for_each(|operand| self.mark_comparison(operand, 2, literal));
            }
            Expr::IfExpr(it) => {
                self.mark_operand(&it.test_expr, 0);
                self.mark_operand(&it.true_expr, times);
                it.false_expr.iter().for_each(|other| self.mark_operand(other, times));
            }
        }
    }

    fn mark_weighed(&mut self, at: usize, times: u64) {
        if times > 0 {
            self.insert_mark(at, format!("|_weighed({times})"));
        }
    }

    fn mark_operation(&mut self, it: &Spanned<BinOp<'_>>, times: u64) {
        let operands = [&it.left, &it.right];
        let times = match it.op {
            BinOpKind::ScAnd | BinOpKind::ScOr => times,
            BinOpKind::Add | BinOpKind::Concat => times + 1,
            // One factor is a literal number; the other one is repeated.
            BinOpKind::Mul => {
                (times + 1).saturating_mul(operands.into_iter().filter_map(literal_number).max().unwrap_or(1).max(1))
            }
            _ => 1,
        };
        let is_order = matches!(it.op, BinOpKind::Lt | BinOpKind::Lte | BinOpKind::Gt | BinOpKind::Gte);
        let literal = if is_order { find_literal_kind(operands) } else { None };
        operands.into_iter().for_each(|operand| self.mark_comparison(operand, times, literal));
    }

    /// Marks an operand of an order comparison: compared with a literal number it must not be a text, and with a literal text no
    /// number. A comparison with a number takes constant time.
    fn mark_comparison(&mut self, operand: &Expr<'_>, times: u64, literal: Option<LiteralKind>) {
        let Some(literal) = literal.filter(|_| accepts_filter(operand)) else {
            return self.mark_operand(operand, times);
        };
        let (times, mark) = match literal {
            LiteralKind::Number => (0, "|_no_text()"),
            LiteralKind::Text => (times, "|_no_number()"),
        };
        self.mark_operand(operand, times);
        self.insert_mark(span_range(operand.span()).end, mark);
    }

    fn mark_filter(&mut self, it: &Spanned<Filter<'_>>) {
        if let Some(value) = &it.expr {
            let asks = matches!(it.name, "default" | "d");
            if !asks || !self.mark_existence_test(value) {
                self.mark_operand(value, 0);
            }
        }
        self.mark_arguments(&it.args, 0);
    }

    fn mark_test(&mut self, it: &Spanned<Test<'_>>) {
        let asks = matches!(it.name, "defined" | "undefined");
        if !asks || !self.mark_existence_test(&it.expr) {
            self.mark_operand(&it.expr, 0);
        }
        let name = span_range(it.span()).start + it.name.len();
        let in_brackets = self.text.get(name..).is_none_or(|rest| rest.trim_start().starts_with('('));
        if !in_brackets
            && let [CallArg::Pos(value)] = it.args.as_slice()
            && let Some(start) = path_start(value)
        {
            // A bracket directly after the test's name would enclose all of its arguments.
            self.insert_mark(start, "(");
            self.mark_arguments(&it.args, 0);
            return self.insert_mark(span_range(value.span()).end, ")");
        }
        self.mark_arguments(&it.args, 0);
    }

    fn mark_arguments(&mut self, arguments: &[CallArg<'_>], times: u64) {
        for argument in arguments {
            match argument {
                CallArg::Pos(value) | CallArg::Kwarg(_, value) => self.mark_operand(value, times),
                CallArg::PosSplat(_) | CallArg::KwargSplat(_) => {}
            }
        }
    }

    /// Marks a path whose existence is tested: its parents may be missing too. Returns whether it did.
    fn mark_existence_test(&mut self, value: &Expr<'_>) -> bool {
        let (mut names, mut inner) = (Vec::<serde_json::Value>::new(), value);
        let root = loop {
            inner = match inner {
                Expr::Var(root) => break span_range(root.span()).end,
                Expr::GetAttr(it) => {
                    names.push(it.name.into());
                    &it.expr
                }
                Expr::GetItem(it) => {
                    let Expr::Const(name) = &it.subscript_expr else { return false };
                    let place = name.value.as_i64().filter(|_| name.value.is_integer());
                    let Some(name) = name.value.as_str().map(Into::into).or(place.map(Into::into)) else {
                        return false;
                    };
                    names.push(name);
                    &it.expr
                }
                _ => return false,
            };
        };
        let mut mark = String::new();
        for name in names.iter().rev() {
            let _ = write!(mark, "|_field({name})");
        }
        // A closing bracket at the end belongs to the value: `(a).b`.
        let end = span_range(value.span()).end;
        let is_plain = self.text.get(root..end).is_some_and(|path| !path.contains(')'));
        if is_plain && !names.is_empty() {
            self.edits.push((root..end, mark));
        }
        is_plain
    }

    /// Marks a value that is indexed: an index lookup reads a text, or evaluates a lazy list. `outside` counts the lookups further
    /// out without a mark in between.
    fn mark_lookup_path(&mut self, expression: &Expr<'_>, outside: u64) {
        let (base, is_place) = match expression {
            Expr::GetAttr(it) => (&it.expr, false),
            Expr::GetItem(it) => {
                self.mark_operand(&it.subscript_expr, 0);
                let is_name = matches!(&it.subscript_expr, Expr::Const(name) if name.value.as_str().is_some());
                (&it.expr, !is_name)
            }
            Expr::Slice(it) => {
                [&it.start, &it.stop].into_iter().flatten().for_each(|part| self.mark_operand(part, 0));
                (&it.expr, true)
            }
            Expr::Call(it) => return self.mark_arguments(&it.args, 1),
            Expr::Var(_) | Expr::Const(_) => return,
            other => return self.mark_operand(other, outside),
        };
        match path_start(base) {
            Some(start) if is_place => {
                self.insert_mark(start, "(");
                self.mark_lookup_path(base, 0);
                self.insert_mark(span_range(base.span()).end, "|_counted())");
            }
            Some(_) => self.mark_lookup_path(base, 0),
            None => self.mark_lookup_path(base, outside + u64::from(is_place)),
        }
    }
}

/// Returns the start of a name with its lookups.
fn path_start(expression: &Expr<'_>) -> Option<usize> {
    match expression {
        Expr::Var(it) => Some(span_range(it.span()).start),
        Expr::Const(it) => Some(span_range(it.span()).start),
        Expr::GetAttr(it) => path_start(&it.expr),
        Expr::GetItem(it) => path_start(&it.expr),
        Expr::Slice(it) => path_start(&it.expr),
        Expr::Call(it) => path_start(&it.expr),
        _ => None,
    }
}

/// Returns whether a filter directly after the expression applies to all of it.
fn accepts_filter(expression: &Expr<'_>) -> bool {
    matches!(
        expression,
        Expr::Var(_) | Expr::GetAttr(_) | Expr::GetItem(_) | Expr::Slice(_) | Expr::Filter(_) | Expr::Call(_)
    )
}

fn is_order_comparison(operator: CompareOpKind) -> bool {
    matches!(operator, CompareOpKind::Lt | CompareOpKind::Lte | CompareOpKind::Gt | CompareOpKind::Gte)
}

/// The kind of a literal among operands.
#[derive(Clone, Copy)]
enum LiteralKind {
    Number,
    Text,
}

fn find_literal_kind<'e>(operands: impl IntoIterator<Item = &'e Expr<'e>>) -> Option<LiteralKind> {
    operands.into_iter().find_map(|operand| match operand {
        Expr::Const(it) if it.value.is_number() => Some(LiteralKind::Number),
        Expr::Const(it) if it.value.as_str().is_some() => Some(LiteralKind::Text),
        _ => None,
    })
}

/// Returns the value of a literal number.
fn literal_number(expression: &Expr<'_>) -> Option<u64> {
    match expression {
        Expr::Const(it) => it.value.as_i64().and_then(|number| u64::try_from(number).ok()),
        _ => None,
    }
}
