//! From measured cells and their roles to model, ledgers, limit and comparisons: hands each part of `iowhy-explain`
//! what it needs. No rule of its own.

use iowhy_core::cell::CellRun;
use iowhy_core::environment::TargetKind;
use iowhy_core::estimate::Estimate;
use iowhy_core::limit::Limit;
use iowhy_core::model::StackModel;
use iowhy_explain::compare;
use iowhy_explain::fit::{self, FitOptions, HeldOut};
use iowhy_explain::ladder::RungRun;
use iowhy_explain::ledger::{self, LedgerContext};
use iowhy_explain::summary;
use iowhy_probe::campaign::Outcome;
use iowhy_probe::environment;
use iowhy_probe::target::Target;

use crate::command::shared::Layers;
use crate::plan::path::{HELD_OUT_BLOCK_BYTES, LimitCell, PathPlan, Role};
use crate::record::{QuestionLimit, RulerRecord, WayRecord};

/// What was made of the main job's cells.
#[derive(Debug, Default)]
pub(super) struct Analysis {
    /// Our own cost per request.
    pub(super) harness: Option<Estimate>,
    /// The fitted model; absent when too little was measured.
    pub(super) model: Option<StackModel>,
    /// Root mean square of the fit's relative residuals.
    pub(super) residual_percent: Option<f64>,
    /// What the fit could not separate.
    pub(super) notes: Vec<String>,
    /// Block sizes that the model had not seen.
    pub(super) held_out: Vec<HeldOut>,
    /// One per cell of the plan.
    pub(super) layers: Vec<Layers>,
    /// The headline.
    pub(super) limit: Option<Limit>,
    /// The limit of each question.
    pub(super) limits: Vec<QuestionLimit>,
    /// Ways of reading.
    pub(super) ways: Vec<WayRecord>,
}
