//! Marks in an expression that has been looked over: filters that count what its operators go over (`cost`). The operators
//! are minijinja's own and count nothing.
//!
//! ```text
//! a + b == c[i]      a|_weighed(2) + b|_weighed(2) == (c|_counted())[i]|_weighed(1)
//! a.b.c is defined   a|_field("b")|_field("c") is defined
//! ```
//!
//! A filter binds more tightly than any operator, so an operand is marked right behind it, whatever is around it. A mark ends
//! in a bracket, so the next word may stand right behind that: `'a'in b`. What an operator makes is no longer than its operands
//! together, so those need to be marked alone: with how many operators, one within the other, go over them or over what was
//! made of them.

use std::fmt::Write;
use std::ops::Range;

use minijinja::machinery::ast::{BinOp, BinOpKind, CallArg, CompareOpKind, Expr, Filter, Spanned, Stmt, Test};

use crate::error::range;

/// The marked text of an expression.
pub fn expression(text: &str, tree: &Expr<'_>) -> String {
    let mut marks = Marks { text, edits: Vec::new() };
    marks.operand(tree, 0);
    marks.written()
}

/// The marked text of a template.
pub fn template(text: &str, tree: &Stmt<'_>) -> String {
    let mut marks = Marks { text, edits: Vec::new() };
    marks.statement(tree);
    marks.written()
}

struct Marks<'t> {
    text: &'t str,
    /// What is put in place of what.
    edits: Vec<(Range<usize>, String)>,
}

impl Marks<'_> {
    fn written(mut self) -> String {
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

    fn put(&mut self, at: usize, mark: impl Into<String>) {
        self.edits.push((at..at, mark.into()));
    }

    fn statement(&mut self, statement: &Stmt<'_>) {
        match statement {
            Stmt::Template(template) => template.children.iter().for_each(|child| self.statement(child)),
            Stmt::EmitExpr(emitted) => self.operand(&emitted.expr, 0),
            Stmt::IfCond(choice) => {
                self.operand(&choice.expr, 0);
                choice.true_body.iter().chain(&choice.false_body).for_each(|child| self.statement(child));
            }
            Stmt::ForLoop(each) => {
                self.operand(&each.iter, 1);
                each.filter_expr.iter().for_each(|condition| self.operand(condition, 0));
                each.body.iter().chain(&each.else_body).for_each(|child| self.statement(child));
            }
            _ => {}
        }
    }

    /// Marks what so many operators go over.
    fn operand(&mut self, expression: &Expr<'_>, times: u64) {
        match expression {
            Expr::Const(it) if it.value.as_str().is_none() => {}
            Expr::Const(it) => self.weighed(range(it.span()).end, times),
            Expr::Var(it) => self.weighed(range(it.span()).end, times),
            Expr::GetAttr(_) | Expr::GetItem(_) | Expr::Slice(_) => {
                self.path(expression, 0);
                self.weighed(range(expression.span()).end, times);
            }
            Expr::Call(it) => {
                self.arguments(&it.args, 1);
                self.weighed(range(it.span()).end, times);
            }
            Expr::Filter(it) => {
                self.filter(it);
                self.weighed(range(it.span()).end, times);
            }
            Expr::Test(it) => self.test(it),
            Expr::List(it) => it.items.iter().for_each(|item| self.operand(item, times)),
            Expr::Tuple(it) => it.items.iter().for_each(|item| self.operand(item, times)),
            Expr::Map(it) => it.keys.iter().chain(&it.values).for_each(|item| self.operand(item, times)),
            Expr::UnaryOp(it) => self.operand(&it.expr, 0),
            Expr::BinOp(it) => self.operation(it, times),
            Expr::Compare(it) => {
                let operands = || std::iter::once(&it.expr).chain(it.ops.iter().map(|other| &other.expr));
                let is_order = it.ops.iter().all(|other| is_order(other.op));
                let literal = if is_order { literal_among(operands()) } else { None };
                operands().for_each(|operand| self.compared(operand, 2, literal));
            }
            Expr::IfExpr(it) => {
                self.operand(&it.test_expr, 0);
                self.operand(&it.true_expr, times);
                it.false_expr.iter().for_each(|other| self.operand(other, times));
            }
        }
    }

    fn weighed(&mut self, at: usize, times: u64) {
        if times > 0 {
            self.put(at, format!("|_weighed({times})"));
        }
    }

    fn operation(&mut self, it: &Spanned<BinOp<'_>>, times: u64) {
        let operands = [&it.left, &it.right];
        let times = match it.op {
            BinOpKind::ScAnd | BinOpKind::ScOr => times,
            BinOpKind::Add | BinOpKind::Concat => times + 1,
            // One of them is a number that is written out; what is repeated is the other.
            BinOpKind::Mul => {
                (times + 1).saturating_mul(operands.into_iter().filter_map(number).max().unwrap_or(1).max(1))
            }
            _ => 1,
        };
        let is_order = matches!(it.op, BinOpKind::Lt | BinOpKind::Lte | BinOpKind::Gt | BinOpKind::Gte);
        let literal = if is_order { literal_among(operands) } else { None };
        operands.into_iter().for_each(|operand| self.compared(operand, times, literal));
    }

    /// Marks what is less or more than something else: beside a number that is written out it has to be no text, and beside a
    /// text no number. To compare with a number takes no time, whatever it is.
    fn compared(&mut self, operand: &Expr<'_>, times: u64, literal: Option<LiteralKind>) {
        let Some(literal) = literal.filter(|_| is_value(operand)) else { return self.operand(operand, times) };
        let (times, mark) = match literal {
            LiteralKind::Number => (0, "|_no_text()"),
            LiteralKind::Text => (times, "|_no_number()"),
        };
        self.operand(operand, times);
        self.put(range(operand.span()).end, mark);
    }

    fn filter(&mut self, it: &Spanned<Filter<'_>>) {
        if let Some(value) = &it.expr {
            let asks = matches!(it.name, "default" | "d");
            if !asks || !self.asked(value) {
                self.operand(value, 0);
            }
        }
        self.arguments(&it.args, 0);
    }

    fn test(&mut self, it: &Spanned<Test<'_>>) {
        let asks = matches!(it.name, "defined" | "undefined");
        if !asks || !self.asked(&it.expr) {
            self.operand(&it.expr, 0);
        }
        let name = range(it.span()).start + it.name.len();
        let in_brackets = self.text.get(name..).is_none_or(|rest| rest.trim_start().starts_with('('));
        if !in_brackets
            && let [CallArg::Pos(value)] = it.args.as_slice()
            && let Some(start) = start(value)
        {
            // A bracket of ours right behind the name would be that of the arguments.
            self.put(start, "(");
            self.arguments(&it.args, 0);
            return self.put(range(value.span()).end, ")");
        }
        self.arguments(&it.args, 0);
    }

    fn arguments(&mut self, arguments: &[CallArg<'_>], times: u64) {
        for argument in arguments {
            match argument {
                CallArg::Pos(value) | CallArg::Kwarg(_, value) => self.operand(value, times),
                CallArg::PosSplat(_) | CallArg::KwargSplat(_) => {}
            }
        }
    }

    /// Names with dots between them of which it is asked whether they are there: on the way there, too, nothing may be.
    fn asked(&mut self, value: &Expr<'_>) -> bool {
        let (mut names, mut inner) = (Vec::<serde_json::Value>::new(), value);
        let root = loop {
            inner = match inner {
                Expr::Var(root) => break range(root.span()).end,
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
        // Where it ends in brackets, those are of the value too: `(a).b`.
        let end = range(value.span()).end;
        let is_plain = self.text.get(root..end).is_some_and(|path| !path.contains(')'));
        if is_plain && !names.is_empty() {
            self.edits.push((root..end, mark));
        }
        is_plain
    }

    /// A value in which something is looked up by its place: that goes over a text, or over a list that has to be worked out.
    /// `outside` says how often that happens further out, with nothing marked in between.
    fn path(&mut self, expression: &Expr<'_>, outside: u64) {
        let (base, is_place) = match expression {
            Expr::GetAttr(it) => (&it.expr, false),
            Expr::GetItem(it) => {
                self.operand(&it.subscript_expr, 0);
                let is_name = matches!(&it.subscript_expr, Expr::Const(name) if name.value.as_str().is_some());
                (&it.expr, !is_name)
            }
            Expr::Slice(it) => {
                [&it.start, &it.stop].into_iter().flatten().for_each(|part| self.operand(part, 0));
                (&it.expr, true)
            }
            Expr::Call(it) => return self.arguments(&it.args, 1),
            Expr::Var(_) | Expr::Const(_) => return,
            other => return self.operand(other, outside),
        };
        match start(base) {
            Some(start) if is_place => {
                self.put(start, "(");
                self.path(base, 0);
                self.put(range(base.span()).end, "|_counted())");
            }
            Some(_) => self.path(base, 0),
            None => self.path(base, outside + u64::from(is_place)),
        }
    }
}

/// Where a name with what is looked up in it begins.
fn start(expression: &Expr<'_>) -> Option<usize> {
    match expression {
        Expr::Var(it) => Some(range(it.span()).start),
        Expr::Const(it) => Some(range(it.span()).start),
        Expr::GetAttr(it) => start(&it.expr),
        Expr::GetItem(it) => start(&it.expr),
        Expr::Slice(it) => start(&it.expr),
        Expr::Call(it) => start(&it.expr),
        _ => None,
    }
}

/// Whether a filter may stand right behind it, and is for all of it.
fn is_value(expression: &Expr<'_>) -> bool {
    matches!(
        expression,
        Expr::Var(_) | Expr::GetAttr(_) | Expr::GetItem(_) | Expr::Slice(_) | Expr::Filter(_) | Expr::Call(_)
    )
}

fn is_order(operator: CompareOpKind) -> bool {
    matches!(operator, CompareOpKind::Lt | CompareOpKind::Lte | CompareOpKind::Gt | CompareOpKind::Gte)
}

/// What is written out among operands.
#[derive(Clone, Copy)]
enum LiteralKind {
    Number,
    Text,
}

fn literal_among<'e>(operands: impl IntoIterator<Item = &'e Expr<'e>>) -> Option<LiteralKind> {
    operands.into_iter().find_map(|operand| match operand {
        Expr::Const(it) if it.value.is_number() => Some(LiteralKind::Number),
        Expr::Const(it) if it.value.as_str().is_some() => Some(LiteralKind::Text),
        _ => None,
    })
}

/// A number that is written out.
fn number(expression: &Expr<'_>) -> Option<u64> {
    match expression {
        Expr::Const(it) => it.value.as_i64().and_then(|number| u64::try_from(number).ok()),
        _ => None,
    }
}
