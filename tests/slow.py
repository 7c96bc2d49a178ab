"""Which tests are slow: those that took more than half a second of processor time, with all their cases.

`tests/conftest.py` marks them; `pytest -m "not slow"` leaves them out.
"""

from __future__ import annotations

__all__ = ["SLOW"]

SLOW: dict[str, frozenset[str]] = {
    "htagraph/analyses/slack.py": frozenset(
        {
            "htagraph.analyses.slack.slack",
        }
    ),
    "htagraph/analyses/stragglers.py": frozenset(
        {
            "htagraph.analyses.stragglers.stragglers",
        }
    ),
    "htagraph/output/export/parquet.py": frozenset(
        {
            "htagraph.output.export.parquet.to_parquet",
        }
    ),
    "htagraph/output/export/perfetto.py": frozenset(
        {
            "htagraph.output.export.perfetto.to_perfetto",
        }
    ),
    "htagraph/output/html/report.py": frozenset(
        {
            "htagraph.output.html.report.report",
        }
    ),
    "htagraph/output/summary.py": frozenset(
        {
            "htagraph.output.summary.Summary.to_dict",
            "htagraph.output.summary.summarize",
        }
    ),
    "tests/analyses/differences/test_alignment.py": frozenset(
        {
            "test_a_place_has_one_path_and_at_most_one_activity_per_rank_and_step",
            "test_the_tree_is_that_of_names",
        }
    ),
    "tests/analyses/differences/test_compare.py": frozenset(
        {
            "test_columns_are_the_same_on_every_kind_of_job",
            "test_counts_and_times_are_those_of_the_activities",
        }
    ),
    "tests/analyses/differences/test_compared_parts.py": frozenset(
        {
            "test_repeats_are_the_pairs_of_rank_and_step_that_have_activities",
        }
    ),
    "tests/analyses/differences/test_diff.py": frozenset(
        {
            "test_a_diff_says_that_devices_and_sizes_differ",
            "test_a_job_does_not_differ_from_itself",
            "test_any_job_can_be_compared_with_any",
            "test_contributions_sum_to_the_windows_and_turn_around",
            "test_different_numbers_of_ranks_are_said",
            "test_real_pairs",
            "test_the_change_is_put_where_it_was_made",
            "test_the_steps_of_a_real_job_are_compared",
        }
    ),
    "tests/analyses/differences/test_effects.py": frozenset(
        {
            "test_the_other_way_round_effects_have_the_other_sign",
        }
    ),
    "tests/analyses/memory/test_at_peak.py": frozenset(
        {
            "test_it_is_whoever_allocated_last",
        }
    ),
    "tests/analyses/test_annotated_kernels.py": frozenset(
        {
            "test_every_work_has_one_row_with_the_first_annotation_above_its_launch",
        }
    ),
    "tests/analyses/test_annotation_breakdown.py": frozenset(
        {
            "test_the_statistics_are_those_of_the_durations_in_the_file",
        }
    ),
    "tests/analyses/test_call_tree.py": frozenset(
        {
            "test_every_kernel_counts_for_all_above_it",
            "test_the_tree_is_that_of_htas_call_graph",
        }
    ),
    "tests/analyses/test_collectives.py": frozenset(
        {
            "test_bandwidths_are_bytes_over_time",
        }
    ),
    "tests/analyses/test_critical_path.py": frozenset(
        {
            "test_real_traces_tile_their_windows",
            "test_the_path_hops_to_the_rank_that_was_waited_for",
            "test_the_path_is_a_longest_one_of_networkx",
            "test_the_segments_tile_the_window",
        }
    ),
    "tests/analyses/test_idle_breakdown.py": frozenset(
        {
            "test_a_ranks_causes_sum_to_the_idle_time_of_the_temporal_breakdown",
            "test_the_causes_are_what_the_definition_gives",
            "test_the_causes_of_ranks_are_what_the_definition_gives",
            "test_work_and_pauses_of_a_stream_sum_to_its_window",
        }
    ),
    "tests/analyses/test_idle_intervals.py": frozenset(
        {
            "test_every_work_but_a_streams_first_has_a_row_measured_from_the_one_before",
            "test_the_pauses_are_those_that_the_breakdown_sums_up",
        }
    ),
    "tests/analyses/test_kernel_breakdown.py": frozenset(
        {
            "test_the_shares_of_a_rank_sum_to_a_hundred",
            "test_the_statistics_are_those_of_the_durations_in_the_file",
        }
    ),
    "tests/analyses/test_kernel_distribution.py": frozenset(
        {
            "test_the_figures_are_those_of_the_durations_in_the_files",
        }
    ),
    "tests/analyses/test_kernel_patterns.py": frozenset(
        {
            "test_patterns_are_those_that_the_slow_walk_finds",
        }
    ),
    "tests/analyses/test_kernel_types.py": frozenset(
        {
            "test_the_combinations_are_what_the_slow_sweep_finds",
            "test_the_rows_sum_to_the_busy_time",
        }
    ),
    "tests/analyses/test_launch_stats.py": frozenset(
        {
            "test_the_rows_are_those_of_a_join_by_correlation",
        }
    ),
    "tests/analyses/test_memory_bandwidth.py": frozenset(
        {
            "test_at_each_moment_it_is_the_sum_of_the_copies_under_way",
        }
    ),
    "tests/analyses/test_operator_breakdown.py": frozenset(
        {
            "test_the_times_are_those_of_a_slow_walk_upwards",
        }
    ),
    "tests/analyses/test_operator_kernels.py": frozenset(
        {
            "test_it_is_what_a_walk_up_from_each_launch_finds",
        }
    ),
    "tests/analyses/test_overlap.py": frozenset(
        {
            "test_no_more_is_hidden_than_there_is_of_either",
            "test_what_is_hidden_is_what_the_slow_sweep_finds",
        }
    ),
    "tests/analyses/test_queue_length.py": frozenset(
        {
            "test_the_length_is_the_number_of_works_enqueued_and_not_started",
            "test_time_weighted_by_length_is_the_waiting_of_all_kernels",
        }
    ),
    "tests/analyses/test_roofline.py": frozenset(
        {
            "test_no_real_operator_is_beyond_its_devices_roof",
            "test_one_odd_operator_is_counted_as_left_out",
        }
    ),
    "tests/analyses/test_slack.py": frozenset(
        {
            "test_slack_and_drag_are_those_of_rescheduling",
            "test_slack_and_drag_of_a_trace_are_those_of_rescheduling",
            "test_the_longest_path_without_an_edge_is_that_of_rescheduling",
            "test_what_is_not_exact_is_a_lower_bound",
        }
    ),
    "tests/analyses/test_step_times.py": frozenset(
        {
            "test_a_step_ends_with_the_last_work_of_the_launches_inside_it",
            "test_a_step_is_never_shorter_than_its_annotation",
        }
    ),
    "tests/analyses/test_stragglers.py": frozenset(
        {
            "test_a_slow_host_behind_a_busy_device_delays_nobody",
            "test_a_stage_that_does_more_by_design_is_no_straggler",
            "test_lateness_by_chance_has_no_straggler",
            "test_real_jobs",
            "test_the_slow_rank_and_its_cause_are_found",
            "test_the_sum_reconciles_on_simulated_jobs",
        }
    ),
    "tests/analyses/test_temporal_breakdown.py": frozenset(
        {
            "test_the_parts_are_what_the_slow_sweep_finds",
            "test_the_shares_sum_to_a_hundred",
        }
    ),
    "tests/cli/test_diff.py": frozenset(
        {
            "test_a_limit_decides_the_exit_code",
            "test_bad_input_is_one_line",
            "test_csv_and_markdown_have_every_table",
            "test_names_go_by_name_short_name_or_path",
            "test_steps_of_one_job_are_compared",
            "test_the_table_names_the_cause_and_what_to_do_next",
        }
    ),
    "tests/cli/test_jobs.py": frozenset(
        {
            "test_the_verdict_is_that_of_the_library",
            "test_workers_answer_for_the_ranks_that_they_can_read",
        }
    ),
    "tests/cli/test_main.py": frozenset(
        {
            "test_a_closed_pipe_is_no_traceback",
            "test_a_cut_file_is_summarized_with_a_warning",
            "test_a_damaged_file_is_one_line_from_the_process_too",
            "test_a_reader_that_leaves_early_sees_no_traceback",
            "test_an_unusable_file_is_one_line_that_names_it",
            "test_every_format_goes_to_stdout_and_nothing_to_stderr",
            "test_many_unescaped_quotes_take_time_in_proportion",
            "test_odd_ids_and_many_categories_are_summarized",
            "test_ranks_are_numbers_and_ranges",
        }
    ),
    "tests/cli/test_others.py": frozenset(
        {
            "test_the_job_is_that_of_the_repository_and_its_summary_the_same",
            "test_without_a_folder_it_is_a_temporary_one_that_the_output_names",
        }
    ),
    "tests/cli/test_pages.py": frozenset(
        {
            "test_a_page_is_written_and_said_where",
            "test_the_page_and_its_events_are_served_until_it_is_interrupted",
            "test_two_jobs_are_compared",
        }
    ),
    "tests/cli/test_what_if.py": frozenset(
        {
            "test_a_prediction_is_that_of_the_library",
            "test_an_optional_value_does_not_swallow_the_path",
            "test_any_sequence_of_options_is_kept_in_order",
            "test_changes_apply_in_the_order_of_the_command_line",
            "test_what_nothing_fits_is_one_line_that_names_what_would",
        }
    ),
    "tests/cluster/test_engines.py": frozenset(
        {
            "test_a_job_on_workers_answers_as_one_graph",
            "test_a_killed_worker_and_a_file_that_cannot_be_read_cost_no_other_rank_its_answer",
            "test_a_process_that_hangs_is_ended",
            "test_a_worker_that_dies_once_costs_nothing_and_one_that_always_does_its_item",
        }
    ),
    "tests/cluster/test_job.py": frozenset(
        {
            "test_breakdowns_by_rank_and_step_times_are_those_of_one_graph",
        }
    ),
    "tests/core/test_compiled.py": frozenset(
        {
            "test_the_package_runs_where_nothing_but_the_temporary_folder_can_be_written",
        }
    ),
    "tests/core/test_errors.py": frozenset(
        {
            "test_only_known_words_are_offered_and_a_known_word_is_offered_first",
        }
    ),
    "tests/core/test_statistics.py": frozenset(
        {
            "test_statistics_are_those_of_pandas",
        }
    ),
    "tests/core/test_traverse.py": frozenset(
        {
            "test_a_schedule_puts_each_vertex_where_its_predecessors_allow_plus_its_gap",
            "test_an_edge_beside_another_path_is_redundant",
            "test_every_vertex_comes_after_its_predecessors",
            "test_levels_and_reach_are_those_of_networkx",
            "test_the_latest_moment_is_the_end_less_the_longest_path_to_it",
            "test_the_longest_path_is_the_longest_of_all_paths",
            "test_the_redundant_edges_are_those_that_networkx_leaves_out",
        }
    ),
    "tests/findings/test_interrupted.py": frozenset(
        {
            "test_of_interruptions_that_cost_little_nothing_is_said",
        }
    ),
    "tests/graph/construction/matching/test_match.py": frozenset(
        {
            "test_a_file_of_another_run_is_refused_and_the_others_are_linked",
            "test_an_absent_rank_is_said_and_the_others_are_linked",
            "test_every_collective_of_every_regime_is_matched",
            "test_meshes_without_arguments_fall_into_their_groups",
            "test_no_link_is_ever_wrong",
            "test_operations_are_named_by_what_called_them",
            "test_real_traces",
        }
    ),
    "tests/graph/construction/matching/test_members.py": frozenset(
        {
            "test_arguments_tell_group_size_and_bytes",
            "test_batched_sends_and_receives_go_by_the_calls_before_their_launch",
            "test_sends_and_receives_are_told_apart_without_arguments",
            "test_sizes_that_differ_between_ranks_do_not_tell_collectives_apart",
        }
    ),
    "tests/graph/construction/test_activities.py": frozenset(
        {
            "test_every_event_on_a_thread_or_a_stream_is_one_activity",
            "test_the_cause_of_device_work_is_the_call_with_its_correlation",
        }
    ),
    "tests/graph/construction/test_build.py": frozenset(
        {
            "test_every_built_graph_keeps_its_invariants",
            "test_every_edge_was_made_by_a_rule",
        }
    ),
    "tests/graph/construction/test_fit.py": frozenset(
        {
            "test_no_lag_is_longer_than_observed",
        }
    ),
    "tests/graph/construction/test_partial_overlap.py": frozenset(
        {
            "test_parents_are_what_the_slow_search_finds_lane_by_lane",
            "test_the_fast_path_gives_the_same",
        }
    ),
    "tests/graph/construction/test_settle.py": frozenset(
        {
            "test_no_lag_is_larger_than_what_was_recorded",
        }
    ),
    "tests/graph/evidence/test_calls.py": frozenset(
        {
            "test_the_last_and_first_work_around_a_call_are_what_a_search_finds",
            "test_the_owner_is_the_first_place_on_the_way_up",
        }
    ),
    "tests/graph/evidence/test_job.py": frozenset(
        {
            "test_slices_tile_each_thread_and_name_the_innermost_activity_at_work",
        }
    ),
    "tests/graph/evidence/test_stream_waits.py": frozenset(
        {
            "test_waits_without_calls_are_true_and_those_that_bind_are_found",
        }
    ),
    "tests/graph/evidence/test_waits.py": frozenset(
        {
            "test_the_kth_record_back_is_what_a_search_finds",
        }
    ),
    "tests/graph/measures/test_pauses.py": frozenset(
        {
            "test_pauses_are_those_of_walking_along_each_stream",
            "test_pauses_sum_to_the_idle_time_of_any_job",
        }
    ),
    "tests/graph/measures/test_steps.py": frozenset(
        {
            "test_summaries_and_predictions_give_the_same",
        }
    ),
    "tests/graph/measures/test_waits.py": frozenset(
        {
            "test_wait_transfer_and_excess_are_the_duration",
        }
    ),
    "tests/graph/rules/test_autograd.py": frozenset(
        {
            "test_flows_and_sequence_numbers_agree_where_a_trace_has_both",
            "test_flows_of_the_rank_with_the_70000th_lane_are_found",
            "test_links_join_operators_of_one_rank",
        }
    ),
    "tests/graph/rules/test_body.py": frozenset(
        {
            "test_a_threads_work_covers_the_union_of_its_activities",
            "test_the_lags_of_an_activity_sum_to_its_duration_without_its_childrens",
        }
    ),
    "tests/graph/rules/test_collective.py": frozenset(
        {
            "test_a_broadcast_waits_for_its_root_only",
            "test_an_all_to_all_waits_for_nobody_who_comes_too_late",
            "test_ends_wait_for_all_arrivals_of_a_barrier",
            "test_joins_lie_at_the_last_arrival_and_edges_are_tight",
            "test_no_edge_of_real_traces_is_refused",
        }
    ),
    "tests/graph/rules/test_event_wait.py": frozenset(
        {
            "test_calls_that_nccl_makes_for_itself_mislead_nobody",
            "test_inferred_waits_are_the_true_ones",
        }
    ),
    "tests/graph/rules/test_host_order.py": frozenset(
        {
            "test_host_order_and_bodies_form_one_chain_per_thread",
        }
    ),
    "tests/graph/rules/test_host_sync.py": frozenset(
        {
            "test_simulated_syncs_are_the_true_ones",
        }
    ),
    "tests/graph/rules/test_launch.py": frozenset(
        {
            "test_a_real_trace_has_a_launch_edge_for_all_work_whose_correlation_a_call_has",
            "test_every_launch_pair_of_the_file_is_an_edge_no_tighter_than_observed",
        }
    ),
    "tests/graph/rules/test_p2p.py": frozenset(
        {
            "test_neighbours_are_found_under_any_clocks_where_both_ways_agree",
            "test_pairs_wait_for_each_other",
            "test_sends_and_receives_have_edges_of_their_own_kind",
            "test_stages_that_are_no_neighbours_are_not_linked",
        }
    ),
    "tests/graph/rules/test_step.py": frozenset(
        {
            "test_a_boundary_lies_at_the_last_end_of_its_step",
        }
    ),
    "tests/graph/rules/test_stream.py": frozenset(
        {
            "test_each_piece_of_work_follows_all_that_started_before_it_on_its_stream",
        }
    ),
    "tests/graph/rules/test_thread.py": frozenset(
        {
            "test_each_gloo_collective_is_enqueued_and_awaited",
            "test_the_hand_overs_of_simulated_jobs_are_found",
        }
    ),
    "tests/graph/storage/test_saved.py": frozenset(
        {
            "test_an_opened_graph_gives_the_same_answers",
            "test_any_job_comes_back",
            "test_every_class_that_a_graph_holds_is_known",
        }
    ),
    "tests/graph/test_activities.py": frozenset(
        {
            "test_each_stream_has_its_work_in_the_order_of_time",
            "test_the_activities_of_a_rank_lie_together",
        }
    ),
    "tests/graph/test_clocks.py": frozenset(
        {
            "test_drift_is_seen_in_a_long_window",
            "test_injected_offsets_are_recovered",
            "test_offsets_injected_into_real_traces_are_recovered",
            "test_ranks_that_met_nobody_have_clocks_of_their_own",
            "test_right_clocks_stay_untouched",
        }
    ),
    "tests/graph/test_coverage.py": frozenset(
        {
            "test_no_part_is_larger_than_the_whole",
        }
    ),
    "tests/graph/test_dependency_graph.py": frozenset(
        {
            "test_edges_lie_in_order_both_ways",
        }
    ),
    "tests/graph/test_gaps.py": frozenset(
        {
            "test_the_binding_edge_leaves_exactly_the_gap",
        }
    ),
    "tests/graph/test_load.py": frozenset(
        {
            "test_two_files_that_turn_out_to_be_one_rank_are_refused_by_name",
        }
    ),
    "tests/graph/test_networkx_backend.py": frozenset(
        {
            "test_a_function_gives_on_a_dag_what_networkx_gives",
            "test_a_function_gives_on_a_trace_what_networkx_gives",
            "test_a_function_of_a_node_gives_what_networkx_gives",
        }
    ),
    "tests/graph/test_selection.py": frozenset(
        {
            "test_a_criterion_is_its_definition",
            "test_a_time_range_holds_what_begins_and_ends_in_it",
            "test_ancestors_and_descendants_are_each_others_inverse",
            "test_filters_leave_what_htas_leave",
            "test_positions_are_those_of_a_search",
            "test_ranks_and_steps_are_those_of_the_activities",
            "test_selections_are_sets",
        }
    ),
    "tests/hta/analyzers/test_critical_path_analysis.py": frozenset(
        {
            "test_a_path_spans_its_step_though_backward_runs_on_a_thread_of_its_own",
            "test_it_fails_on_no_trace",
        }
    ),
    "tests/hta/shapes/test_breakdowns.py": frozenset(
        {
            "test_the_annotations_of_kernels_are_htas",
            "test_the_temporal_breakdown_is_htas",
        }
    ),
    "tests/hta/shapes/test_counters.py": frozenset(
        {
            "test_queue_lengths_are_those_of_hta",
        }
    ),
    "tests/hta/shapes/test_launches.py": frozenset(
        {
            "test_graph_launches_which_hta_leaves_out_are_there",
            "test_the_candidates_are_those_of_hta",
            "test_the_numbers_are_htas",
        }
    ),
    "tests/hta/shapes/test_path_files.py": frozenset(
        {
            "test_perfetto_reads_all_of_it",
        }
    ),
    "tests/hta/shapes/test_path_view.py": frozenset(
        {
            "test_all_kernels_of_a_cuda_graph_are_nodes",
            "test_the_heaviest_path_is_networkxs_choice_among_equals",
        }
    ),
    "tests/hta/test_trace_analysis.py": frozenset(
        {
            "test_every_method_has_an_answer",
            "test_odd_jobs_have_answers_of_the_usual_shape",
            "test_what_takes_long_to_import_is_not_imported_on_the_way",
        }
    ),
    "tests/hta/test_trace_diff.py": frozenset(
        {
            "test_numbers_are_those_of_hta",
        }
    ),
    "tests/laws/test_accuracy.py": frozenset(
        {
            "test_no_prediction_is_far_off",
        }
    ),
    "tests/laws/test_changes_against_the_simulator.py": frozenset(
        {
            "test_a_prediction_meets_the_truth",
            "test_another_network",
            "test_more_ranks_are_an_extrapolation_near_the_truth",
            "test_the_mean_step_is_the_simulators",
        }
    ),
    "tests/laws/test_command_outputs.py": frozenset(
        {
            "test_no_command_writes_its_results_over_a_file_that_it_read",
            "test_nor_over_one_that_the_path_means_and_ranks_left_out",
        }
    ),
    "tests/laws/test_command_texts.py": frozenset(
        {
            "test_units_are_in_headings",
        }
    ),
    "tests/laws/test_commands.py": frozenset(
        {
            "test_a_command_that_is_suggested_can_be_run",
            "test_an_absent_rank_and_an_unusable_file_are_one_line",
            "test_csv_has_a_table_behind_each_title",
            "test_json_is_the_envelope_of_all_commands",
            "test_markdown_has_tables_of_even_rows_and_a_conclusion",
            "test_numbers_have_units_in_their_names",
            "test_output_goes_to_a_file",
            "test_small_jobs_get_an_answer",
            "test_tables_fit_the_terminal_and_end_in_a_conclusion",
            "test_wrong_usage_has_exit_code_two",
        }
    ),
    "tests/laws/test_critical_path_against_hta.py": frozenset(
        {
            "test_the_caller_waits_for_the_thread_of_autograd",
        }
    ),
    "tests/laws/test_figures_in_chromium.py": frozenset(
        {
            "test_every_figure_is_drawn_without_an_error_and_its_texts_can_be_read",
        }
    ),
    "tests/laws/test_patterns_in_perfetto.py": frozenset(
        {
            "test_every_mark_is_found_in_perfetto_and_nothing_is_lost",
        }
    ),
    "tests/laws/test_properties.py": frozenset(
        {
            "test_a_graph_does_not_depend_on_the_order_of_events",
            "test_a_graph_does_not_depend_on_the_order_of_files",
            "test_an_analysis_leaves_the_graph_as_it_was",
            "test_every_generated_trace_gives_a_sound_graph",
            "test_results_do_not_depend_on_the_order_of_events",
            "test_results_do_not_depend_on_the_order_of_files",
            "test_results_do_not_depend_on_what_was_asked_before",
        }
    ),
    "tests/laws/test_skewed_clocks.py": frozenset(
        {
            "test_analyses_do_not_change",
        }
    ),
    "tests/output/export/test_graphviz.py": frozenset(
        {
            "test_a_path_is_a_chain_of_few_boxes",
            "test_the_command_line_writes_both",
        }
    ),
    "tests/output/export/test_parquet.py": frozenset(
        {
            "test_the_tables_say_what_the_graph_says",
        }
    ),
    "tests/output/export/test_perfetto.py": frozenset(
        {
            "test_perfetto_reads_the_counters_that_were_written",
            "test_perfetto_reads_the_path_over_every_trace_without_a_complaint",
        }
    ),
    "tests/output/export/test_recorded_packets.py": frozenset(
        {
            "test_perfetto_reads_a_job_as_it_reads_it_as_json",
            "test_scanned_events_are_written_as_decoded_ones_are",
        }
    ),
    "tests/output/export/test_trace_writer.py": frozenset(
        {
            "test_a_copy_holds_what_the_file_holds",
        }
    ),
    "tests/output/html/test_assets.py": frozenset(
        {
            "test_the_work_of_a_row_is_in_proportion_to_pixels_not_slices",
        }
    ),
    "tests/output/html/test_findings.py": frozenset(
        {
            "test_findings_are_the_verdict_with_commands_and_addresses",
        }
    ),
    "tests/output/html/test_report.py": frozenset(
        {
            "test_a_finding_is_tried_on_the_page",
            "test_a_page_opens_without_a_word_and_asks_for_nothing",
            "test_both_timelines_are_there",
            "test_hostile_names_are_shown_and_do_nothing",
            "test_keys_select_and_zoom",
            "test_links_of_findings_zoom_there_and_work_twice",
            "test_links_select_the_activity_that_they_name",
            "test_on_paper_all_of_a_table_is_shown_and_nothing_to_click",
            "test_search_counts_and_goes_to_the_next",
            "test_sentences_are_those_of_the_diff",
            "test_the_same_job_gives_the_same_page",
            "test_without_scripts_findings_tables_and_charts_are_there",
        }
    ),
    "tests/output/html/test_timeline.py": frozenset(
        {
            "test_a_recorded_job_is_shown_whole",
            "test_any_job_is_shown_whole",
        }
    ),
    "tests/output/reports/test_device_time.py": frozenset(
        {
            "test_a_command_that_is_suggested_can_be_run",
            "test_a_job_without_device_work_has_something_to_say",
            "test_calls_that_take_longer_than_their_work_lead_to_opportunities",
            "test_every_format_can_be_written",
            "test_small_jobs_get_an_answer",
            "test_summaries_are_given_and_series_if_asked_for",
            "test_the_longest_pauses_come_first",
            "test_the_roofline_is_that_of_the_function",
            "test_the_roofline_says_what_to_do",
            "test_the_shares_are_of_all_device_time",
            "test_the_tables_are_those_of_the_analyses",
        }
    ),
    "tests/output/reports/test_files.py": frozenset(
        {
            "test_every_format_is_written",
            "test_the_second_answer_is_the_first_and_that_without_a_cache",
            "test_verbs_share_what_they_loaded",
        }
    ),
    "tests/output/reports/test_ranks.py": frozenset(
        {
            "test_a_faster_network_never_saves_more_than_the_path_allows",
            "test_a_step_has_a_path_of_its_own",
            "test_an_opportunity_is_what_the_same_change_gives",
            "test_the_path_names_what_bounds_the_job_and_a_change_that_helps",
            "test_transfers_that_prevail_suggest_another_network",
        }
    ),
    "tests/output/reports/test_workers.py": frozenset(
        {
            "test_its_figures_are_those_of_the_graph_and_nothing_is_missing",
            "test_stragglers_alone_are_those_of_the_summary",
        }
    ),
    "tests/output/test_render.py": frozenset(
        {
            "test_any_summary_can_be_shown_in_any_form",
        }
    ),
    "tests/output/test_summary.py": frozenset(
        {
            "test_the_envelope_is_json_with_a_version",
        }
    ),
    "tests/published/test_straggler.py": frozenset(
        {
            "test_any_job_replays_as_by_hand_in_every_world",
            "test_the_recorded_world_gives_every_recorded_moment_back",
        }
    ),
    "tests/queries/rank_digests/test_digest.py": frozenset(
        {
            "test_a_digest_of_any_rank_is_some_kilobytes",
            "test_every_digest_comes_back_from_its_bytes",
        }
    ),
    "tests/queries/rank_digests/test_job_skeleton.py": frozenset(
        {
            "test_a_slower_rank_never_makes_a_job_shorter",
            "test_slack_is_that_of_the_whole_graph",
        }
    ),
    "tests/queries/rank_digests/test_joined.py": frozenset(
        {
            "test_collectives_clocks_waits_and_steps_are_those_of_the_whole_graph",
            "test_digests_of_any_job_are_joined_to_the_times_of_its_graph",
        }
    ),
    "tests/queries/test_arguments.py": frozenset(
        {
            "test_a_hundred_thousand_events_take_about_a_second",
            "test_arguments_are_those_that_json_reads",
            "test_links_are_those_of_trying_every_pair",
            "test_what_no_file_recorded_has_no_arguments",
        }
    ),
    "tests/queries/test_attribution.py": frozenset(
        {
            "test_the_operator_is_the_first_upwards",
            "test_the_stack_of_an_activity_is_the_walk_up_the_tree",
        }
    ),
    "tests/queries/test_blame.py": frozenset(
        {
            "test_every_wait_is_charged_in_full",
            "test_the_slow_rank_is_blamed_for_its_kernels_whatever_the_thresholds",
        }
    ),
    "tests/queries/test_breakdowns.py": frozenset(
        {
            "test_all_time_has_one_owner_or_none",
            "test_statistics_are_those_of_each_groups_list",
        }
    ),
    "tests/queries/test_counter_series.py": frozenset(
        {
            "test_a_distribution_is_that_of_each_groups_list",
            "test_each_row_has_the_sum_of_all_copies_under_way",
            "test_every_queue_begins_and_ends_empty",
        }
    ),
    "tests/queries/test_interruptions.py": frozenset(
        {
            "test_eight_ranks_of_a_real_job_go_on_two_by_two",
            "test_those_of_a_real_job_are_long_gaps_in_its_files_too",
            "test_what_was_planted_in_many_names_is_found_and_nothing_else",
        }
    ),
    "tests/queries/test_kernel_sequences.py": frozenset(
        {
            "test_a_sequence_is_the_work_below_an_operator_in_the_order_of_starts",
            "test_a_text_is_looked_for_in_the_names_of_operators_annotations_steps_and_frames",
            "test_work_belongs_to_the_innermost_of_some_activities_above_it",
        }
    ),
    "tests/queries/test_paths.py": frozenset(
        {
            "test_a_way_is_critical_as_soon_as_it_is_longer_by_its_slack",
            "test_each_step_of_a_rank_is_a_window_that_its_path_fills",
            "test_fewer_are_the_first_of_more",
            "test_of_parallel_branches_the_longest_is_next_and_its_slack_is_what_it_is_shorter",
            "test_so_it_is_in_traces",
            "test_the_first_way_has_the_least_slack_of_all_edges_that_bring_work_of_their_own",
        }
    ),
    "tests/queries/test_peers.py": frozenset(
        {
            "test_peers_are_the_kth_of_a_name_within_step_and_lane",
            "test_the_same_work_has_the_same_number_on_all_ranks_and_in_all_steps",
        }
    ),
    "tests/queries/test_recorded_events.py": frozenset(
        {
            "test_the_narrowest_is_what_trying_all_finds",
            "test_the_operators_around_are_those_met_on_the_way_up",
        }
    ),
    "tests/queries/test_replay.py": frozenset(
        {
            "test_every_dag_is_replayed_to_the_nanosecond",
            "test_every_generated_job_is_replayed_to_the_nanosecond",
            "test_without_unexplained_gaps_nothing_comes_later",
        }
    ),
    "tests/test_docs.py": frozenset(
        {
            "test_a_command_on_a_page_runs",
            "test_the_python_on_a_page_runs",
            "test_the_sessions_on_a_page_give_what_it_shows",
            "test_the_start_explains_sentences_that_the_summary_says",
        }
    ),
    "tests/test_house.py": frozenset(
        {
            "test_a_summary_can_be_made_of_every_kind_of_job",
            "test_an_analysis_gives_its_columns_on_every_kind_of_job",
        }
    ),
    "tests/test_notebooks.py": frozenset(
        {
            "test_a_notebook_runs",
        }
    ),
    "tests/trace/kineto/test_decode.py": frozenset(
        {
            "test_columns_and_models_agree_on_every_trace_in_reach",
        }
    ),
    "tests/trace/kineto/test_split.py": frozenset(
        {
            "test_every_serialisation_cut_into_any_pieces_reads_the_same",
        }
    ),
    "tests/trace/test_remote.py": frozenset(
        {
            "test_a_store_gives_the_job_and_the_arguments_that_stay_in_its_files",
        }
    ),
    "tests/whatif/changes/test_cuda_graph.py": frozenset(
        {
            "test_a_blocking_copy_inside_is_refused",
        }
    ),
    "tests/whatif/changes/test_fix_straggler.py": frozenset(
        {
            "test_a_higher_bar_of_standard_errors_never_fixes_more",
            "test_a_place_in_the_step_that_is_slow_every_time_is_fixed_alone",
            "test_a_stall_is_no_straggler",
            "test_auto_is_the_rank_whose_fix_makes_the_job_shortest",
            "test_the_job_without_its_straggler_takes_what_was_predicted",
            "test_the_straggler_and_its_fix_stay_whatever_the_thresholds",
            "test_work_takes_what_it_takes_elsewhere_where_that_is_less",
        }
    ),
    "tests/whatif/changes/test_jitter.py": frozenset(
        {
            "test_the_mean_stays_and_the_spread_is_sigma",
        }
    ),
    "tests/whatif/changes/test_no_overlap.py": frozenset(
        {
            "test_no_overlap_is_the_job_whose_collectives_wait_for_all_computation_before",
        }
    ),
    "tests/whatif/changes/test_perfect_overlap.py": frozenset(
        {
            "test_perfect_overlap_is_the_job_whose_other_work_waits_for_no_collective",
        }
    ),
    "tests/whatif/changes/test_scale_ranks.py": frozenset(
        {
            "test_late_ranks_are_drawn_from_the_spread_of_arrivals",
            "test_only_groups_asked_for_grow",
        }
    ),
    "tests/whatif/changes/test_set_duration.py": frozenset(
        {
            "test_the_lags_of_each_activity_sum_to_it",
        }
    ),
    "tests/whatif/test_opportunities.py": frozenset(
        {
            "test_every_row_is_what_the_what_if_of_its_target_gives",
            "test_kernels_are_ranked_as_trying_each_of_them_ranks_them",
            "test_no_other_kernel_or_operator_gains_more_than_the_first_of_its_kind",
            "test_the_first_rows_are_those_of_the_whole_list",
            "test_what_gains_hardly_more_than_what_it_contains_is_left_out",
            "test_which_gains_count_as_the_same_decides_rows_but_no_gain",
        }
    ),
    "tests/whatif/test_options.py": frozenset(
        {
            "test_any_text_is_a_change_or_a_clear_refusal",
            "test_criteria_that_are_written_are_read_as_they_were",
            "test_numbers_and_ranges_are_read",
        }
    ),
}
"""Names of tests by file; without parameters."""
