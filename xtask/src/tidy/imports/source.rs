//! What a Rust file declares and which paths it uses, apart from its tests.

use proc_macro2::TokenTree;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, Item, ItemUse, Lit, Meta, UseTree, Visibility};

/// A name that a `use` brings into a module.
pub(super) struct Import {
    /// The name; none for `*`.
    pub(super) name: Option<String>,
    pub(super) path: Vec<String>,
    pub(super) is_public: bool,
}

/// A module as its source declares it.
#[derive(Default)]
pub(super) struct Declared {
    /// Its own items, by name.
    pub(super) items: Vec<String>,
    pub(super) imports: Vec<Import>,
    /// Paths in code that start at a module.
    pub(super) paths: Vec<Vec<String>>,
    pub(super) children: Vec<Child>,
}

/// A module in a module.
pub(super) struct Child {
    pub(super) name: String,
    /// Of `#[path]`.
    pub(super) path: Option<String>,
    /// Of a block; otherwise it has a file of its own.
    pub(super) block: Option<Declared>,
}

/// Reads the items of a module.
pub(super) fn declared(items: &[Item]) -> Declared {
    let mut declared = Declared::default();
    for item in items.iter().filter(|item| !is_test(attributes(item))) {
        match item {
            Item::Mod(module) => {
                let block = module.content.as_ref().map(|(_, items)| self::declared(items));
                let path = path_attribute(&module.attrs);
                declared.children.push(Child { name: module.ident.to_string(), path, block });
            }
            Item::Use(item) => declared.add_use(item),
            _ => {
                declared.items.extend(name(item));
                Paths { declared: &mut declared }.visit_item(item);
            }
        }
    }
    declared
}

impl Declared {
    fn add_use(&mut self, item: &ItemUse) {
        // `use ::name` is of another crate.
        if item.leading_colon.is_none() {
            let is_public = !matches!(item.vis, Visibility::Inherited);
            self.add_tree(&item.tree, &[], is_public);
        }
    }

    fn add_tree(&mut self, tree: &UseTree, before: &[String], is_public: bool) {
        let with = |last: String| before.iter().cloned().chain([last]).collect::<Vec<_>>();
        let mut add = |name: Option<String>, path: Vec<String>| {
            self.imports.push(Import { name, path, is_public });
        };
        match tree {
            UseTree::Path(path) => {
                self.add_tree(&path.tree, &with(path.ident.to_string()), is_public);
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.add_tree(tree, before, is_public);
                }
            }
            UseTree::Glob(_) => add(None, before.to_vec()),
            UseTree::Name(name) if name.ident == "self" => {
                add(before.last().cloned(), before.to_vec());
            }
            UseTree::Name(name) => add(Some(name.ident.to_string()), with(name.ident.to_string())),
            UseTree::Rename(name) if name.ident == "self" => {
                add(Some(name.rename.to_string()), before.to_vec());
            }
            UseTree::Rename(name) => {
                add(Some(name.rename.to_string()), with(name.ident.to_string()));
            }
        }
    }
}

/// Finds the paths and the imports in the code of an item.
struct Paths<'a> {
    declared: &'a mut Declared,
}

impl<'ast> Visit<'ast> for Paths<'_> {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() && path.segments.len() > 1 {
            let segments = path.segments.iter().map(|segment| segment.ident.to_string());
            self.declared.paths.push(segments.collect());
        }
        visit::visit_path(self, path);
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        if !is_test(&item.attrs) {
            self.declared.add_use(item);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if !is_test(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        // The arguments of most macros are expressions: their paths begin at crate, super or self.
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in call.tokens.clone() {
            match token {
                TokenTree::Ident(ident) if colons == 2 || path.is_empty() => {
                    path.push(ident.to_string());
                    colons = 0;
                    continue;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' && !path.is_empty() => {
                    colons += 1;
                    continue;
                }
                _ => {}
            }
            if path.len() > 1 {
                self.declared.paths.push(std::mem::take(&mut path));
            }
            path.clear();
            colons = 0;
        }
        visit::visit_macro(self, call);
    }
}

/// Whether an item is compiled for tests only.
fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        if attribute.path().is_ident("test") {
            return true;
        }
        let Meta::List(list) = &attribute.meta else { return false };
        let condition = list.tokens.to_string();
        let mut words = condition.split(|char: char| !char.is_alphanumeric() && char != '_');
        list.path.is_ident("cfg")
            && words.any(|word| word == "test")
            && !condition.replace(' ', "").contains("not(test)")
    })
}

/// What `#[path = "..."]` gives.
fn path_attribute(attributes: &[Attribute]) -> Option<String> {
    attributes.iter().find_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            Expr::Lit(literal) => match &literal.lit {
                Lit::Str(text) => Some(text.value()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    })
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn name(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(ident.to_string())
}
