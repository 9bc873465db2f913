// Made by scripts/make_hf_keys.py; not to be edited.
// clang-format off
#include "models/hf_keys.h"

#include <iterator>

namespace redco {

const char* const kHfVersion = "5.24.0";

// For each model_type: lines `=ALIAS KEY`, `KEY DEFAULT`, and `!KEY` if no code of the model reads
// KEY.
const HfKeyRows kHfKeyRows[] = {
{"afmoe", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
global_attn_every_n_layers 4
head_dim 128
hidden_act "silu"
hidden_size 2048
initializer_range 0.02
intermediate_size 6144
layer_types ["sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention"]
max_position_embeddings 16384
moe_intermediate_size 1408
mup_enabled false
num_attention_heads 16
num_dense_layers 1
num_experts 64
num_experts_per_tok 6
num_hidden_layers 32
num_key_value_heads 16
num_shared_experts 2
output_router_logits false
pad_token_id null
rms_norm_eps 1e-05
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
route_scale 1.0
sliding_window 1024
tie_word_embeddings false
vocab_size 200192
)"},
{"albert", R"(attention_chunk_size null
attention_probs_dropout_prob 0.0
classifier_dropout_prob 0.1
embedding_size 128
hidden_act "gelu_new"
hidden_dropout_prob 0.0
hidden_size 4096
!initializer_range
inner_group_num 1
intermediate_size 16384
layer_norm_eps 1e-12
layer_types null
max_position_embeddings 512
num_attention_heads 64
num_hidden_groups 1
num_hidden_layers 12
pad_token_id 0
sliding_window null
tie_word_embeddings true
type_vocab_size 2
vocab_size 30000
)"},
{"align", R"(attention_chunk_size null
!initializer_range
layer_types null
projection_dim 640
sliding_window null
temperature_init_value 1.0
)"},
{"align_text_model", R"(attention_chunk_size null
attention_probs_dropout_prob 0.1
hidden_act "gelu"
hidden_dropout_prob 0.1
hidden_size 768
!initializer_range
intermediate_size 3072
layer_norm_eps 1e-12
layer_types null
max_position_embeddings 512
num_attention_heads 12
num_hidden_layers 12
pad_token_id 0
sliding_window null
type_vocab_size 2
vocab_size 30522
)"},
{"align_vision_model", R"(attention_chunk_size null
batch_norm_eps 0.001
batch_norm_momentum 0.99
depth_coefficient 3.1
depth_divisor 8
depthwise_padding []
drop_connect_rate 0.2
expand_ratios [1,6,6,6,6,6,6]
hidden_act "swish"
hidden_dim 2560
!image_size
in_channels [32,16,24,40,80,112,192]
!initializer_range
kernel_sizes [3,3,5,3,5,5,3]
layer_types null
num_block_repeats [1,2,2,3,3,4,1]
num_channels 3
num_hidden_layers 55
out_channels [16,24,40,80,112,192,320]
pooling_type "mean"
sliding_window null
squeeze_expansion_ratio 0.25
strides [1,2,2,2,1,2,1]
width_coefficient 2.0
)"},
{"altclip", R"(attention_chunk_size null
initializer_factor 1.0
layer_types null
logit_scale_init_value 2.6592
projection_dim 768
sliding_window null
text_config_dict null
vision_config_dict null
)"},
{"altclip_text_model", R"(attention_chunk_size null
attention_probs_dropout_prob 0
hidden_act "gelu"
hidden_dropout_prob 0.1
hidden_size 1024
initializer_factor 0.02
initializer_range 0.02
intermediate_size 4096
layer_norm_eps 1e-05
layer_types null
max_position_embeddings 514
num_attention_heads 16
num_hidden_layers 24
pad_token_id 1
project_dim 768
sliding_window null
text_config_dict null
type_vocab_size 1
vision_config_dict null
vocab_size 250002
)"},
{"altclip_vision_model", R"(attention_chunk_size null
attention_dropout 0.0
hidden_act "quick_gelu"
hidden_size 768
image_size 224
initializer_factor 1.0
initializer_range 0.02
intermediate_size 3072
layer_norm_eps 1e-05
layer_types null
num_attention_heads 12
num_channels 3
num_hidden_layers 12
patch_size 32
projection_dim 512
sliding_window null
text_config_dict null
vision_config_dict null
)"},
{"apertus", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
hidden_act "xielu"
hidden_size 4096
!initializer_range
intermediate_size 14336
layer_types null
max_position_embeddings 65536
num_attention_heads 32
num_hidden_layers 32
num_key_value_heads 32
pad_token_id 3
rms_norm_eps 1e-05
rope_parameters {"rope_type":"llama3","rope_theta":12000000.0,"factor":8.0,"original_max_position_embeddings":8192,"low_freq_factor":1.0,"high_freq_factor":4.0}
sliding_window null
tie_word_embeddings false
vocab_size 131072
)"},
{"apertus1p5", R"(attention_chunk_size null
audio_token_id 131085
audio_token_offset 262344
image_token_id 131079
image_token_offset 131272
layer_types null
sliding_window null
tie_word_embeddings false
)"},
{"apertus1p5_text", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
hidden_act "xielu"
hidden_size 4096
!initializer_range
intermediate_size 14336
layer_types null
max_position_embeddings 65536
num_attention_heads 32
num_hidden_layers 32
num_key_value_heads 32
output_vocab_size null
pad_token_id 3
rms_norm_eps 1e-05
rope_parameters {"rope_type":"llama3","rope_theta":12000000.0,"factor":8.0,"original_max_position_embeddings":8192,"low_freq_factor":1.0,"high_freq_factor":4.0}
sliding_window null
tie_word_embeddings false
vocab_size 266752
)"},
{"apertus1p5_vision_tokenizer", R"(attention_chunk_size null
attn_resolutions [16]
base_channels 256
channel_multiplier [1,1,2,2,4]
codebook_size 131072
dropout 0.0
embed_dim 256
in_channels 3
latent_channels 256
layer_types null
num_res_blocks 4
resolution 256
sliding_window null
spatial_scale_factor 16
)"},
{"arcee", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
head_dim 80
hidden_act "relu2"
hidden_size 2560
!initializer_range
intermediate_size 18432
layer_types null
max_position_embeddings 4096
mlp_bias false
num_attention_heads 32
num_hidden_layers 32
num_key_value_heads 32
pad_token_id null
rms_norm_eps 1e-05
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
sliding_window null
tie_word_embeddings false
vocab_size 32000
)"},
{"aria", R"(=image_token_id image_token_index
attention_chunk_size null
image_token_index 9
initializer_range 0.02
layer_types null
max_value_projector_patch_to_query_dict 256
projector_patch_to_query_dict {"1225":128,"4900":256}
sliding_window null
tie_word_embeddings false
vision_feature_layer -1
)"},
{"aria_text", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
head_dim 128
hidden_act "silu"
hidden_size 4096
initializer_range 0.02
intermediate_size 4096
layer_types null
max_position_embeddings 2048
mlp_bias false
moe_num_experts 8
moe_num_shared_experts 2
moe_topk 2
num_attention_heads 32
num_hidden_layers 32
num_key_value_heads 32
pad_token_id 2
!pretraining_tp
rms_norm_eps 1e-06
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
sliding_window null
tie_word_embeddings false
vocab_size 32000
)"},
{"audioflamingo3", R"(attention_chunk_size null
audio_token_id 151669
layer_types null
projector_bias true
projector_hidden_act "gelu"
sliding_window null
)"},
{"axk1", R"(=num_local_experts n_routed_experts
attention_bias false
attention_chunk_size null
attention_dropout 0.0
first_k_dense_replace null
head_dim 64
hidden_act "silu"
hidden_size 7168
initializer_range 0.02
intermediate_size 18432
kv_lora_rank 512
layer_types null
max_position_embeddings 32768
mlp_layer_types ["dense","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse"]
moe_intermediate_size 2048
moe_layer_freq null
n_group 8
n_routed_experts 192
n_shared_experts 1
norm_topk_prob true
num_attention_heads 64
num_experts_per_tok 8
num_hidden_layers 61
num_key_value_heads 64
!output_router_logits
pad_token_id null
!pretraining_tp
q_lora_rank 1536
!qk_head_dim
qk_nope_head_dim 128
qk_rope_head_dim 64
rms_norm_eps 1e-06
rope_interleave true
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
routed_scaling_factor 2.5
sliding_window null
tie_word_embeddings false
topk_group 4
v_head_dim 128
vocab_size 163840
)"},
{"axk2", R"(=num_local_experts n_routed_experts
attention_bias false
attention_chunk_size null
attention_dropout 0.0
first_k_dense_replace null
gated_norm_rank 16
head_dim 32
hidden_act "silu"
hidden_size 2048
index_head_dim 128
index_n_heads 16
index_topk 2048
initializer_range 0.02
intermediate_size 5120
kv_lora_rank 128
layer_types ["indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention"]
max_position_embeddings 131072
mlp_layer_types ["dense","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse"]
moe_intermediate_size 512
moe_layer_freq null
n_group null
n_routed_experts 128
n_shared_experts 1
norm_topk_prob true
num_attention_heads 32
num_experts_per_tok 8
num_hidden_layers 48
num_key_value_heads 32
!output_router_logits
pad_token_id null
q_lora_rank 384
!qk_head_dim
qk_nope_head_dim 64
qk_rope_head_dim 32
rms_norm_eps 1e-06
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
routed_scaling_factor 2.5
sliding_window null
tie_word_embeddings false
topk_group null
v_head_dim 64
vocab_size 163840
)"},
{"aya_vision", R"(=image_token_id image_token_index
adapter_layer_norm_eps 1e-06
attention_chunk_size null
downsample_factor 2
image_token_index 255036
layer_types null
sliding_window null
tie_word_embeddings true
!vision_feature_layer
vision_feature_select_strategy "full"
)"},
{"bailing_hybrid", R"(=max_position_embeddings model_max_length
=n_group num_expert_group
=n_shared_experts num_shared_experts
=norm_topk_prob moe_renormalize
=num_experts_per_tok num_experts_per_token
=num_local_experts num_experts
=num_mtp_layers num_nextn_predict_layers
attention_bias false
attention_chunk_size null
attention_dropout 0.0
first_k_dense_replace 2
head_dim 64
hidden_act "silu"
hidden_size 2560
initializer_range 0.02
intermediate_size 6144
kda_lower_bound -5.0
kda_safe_gate true
kv_lora_rank 512
layer_group_size 6
layer_types ["linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","full_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","full_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","full_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","full_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","full_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","full_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","full_attention"]
linear_conv_kernel_dim 4
linear_head_dim 128
linear_num_heads 32
mlp_layer_types ["dense","dense","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse"]
model_max_length 262144
moe_intermediate_size 768
moe_renormalize true
!mtp_loss_scaling_factor
num_attention_heads 32
num_expert_group 8
num_experts 512
num_experts_per_token 8
num_hidden_layers 42
num_key_value_heads 32
num_nextn_predict_layers 1
num_shared_experts 1
!output_router_logits
pad_token_id 156892
!pretraining_tp
q_lora_rank null
!qk_head_dim
qk_nope_head_dim 128
qk_rope_head_dim 64
rms_norm_eps 1e-06
rope_parameters {"rope_type":"default","rope_theta":6000000.0}
rope_theta 6000000.0
routed_scaling_factor 2.5
short_conv_kernel_size 4
sliding_window null
tie_word_embeddings false
topk_group 4
v_head_dim 128
vocab_size 157184
)"},
{"bamba", R"(=layer_types layers_block_type
attention_bias false
attention_chunk_size null
attention_dropout 0.0
attn_layer_indices null
hidden_act "silu"
hidden_size 4096
!ignore_keys_at_rope_validation
!initializer_range
intermediate_size 14336
layer_types null
mamba_chunk_size 256
mamba_conv_bias true
mamba_d_conv 4
mamba_d_head 64
mamba_d_state 256
mamba_expand 2
mamba_n_groups 1
mamba_n_heads 128
mamba_proj_bias false
max_position_embeddings 262144
mlp_bias false
num_attention_heads 32
num_hidden_layers 32
num_key_value_heads 8
num_logits_to_keep 1
pad_token_id 0
rms_norm_eps 1e-05
rope_parameters {"rope_theta":10000.0,"partial_rotary_factor":0.5,"rope_type":"default"}
sliding_window null
tie_word_embeddings false
time_step_limit [0.0,Infinity]
vocab_size 128000
z_loss_coefficient 0.0
)"},
{"bart", R"(=hidden_size d_model
=num_attention_heads encoder_attention_heads
=num_hidden_layers encoder_layers
activation_dropout 0.0
activation_function "gelu"
attention_chunk_size null
attention_dropout 0.0
classifier_dropout 0.0
d_model 1024
decoder_attention_heads 16
decoder_ffn_dim 4096
decoder_layerdrop 0.0
decoder_layers 12
decoder_start_token_id 2
dropout 0.1
encoder_attention_heads 16
encoder_ffn_dim 4096
encoder_layerdrop 0.0
encoder_layers 12
!forced_eos_token_id
!init_std
is_decoder false
layer_types null
max_position_embeddings 1024
num_labels null
pad_token_id 1
scale_embedding false
sliding_window null
tie_word_embeddings true
vocab_size 50265
)"},
{"beam", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
final_logit_softcapping 30.0
head_dim 128
hidden_act "silu"
hidden_size 5120
initializer_range 0.02
intermediate_size 20480
layer_types ["sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention"]
max_position_embeddings 8192
mlp_layer_types ["dense","dense","dense","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse"]
moe_intermediate_size 2560
n_group 8
norm_topk_prob true
num_attention_heads 48
num_experts 256
num_experts_per_tok 8
num_hidden_layers 52
num_key_value_heads 8
!output_router_logits
pad_token_id null
rms_norm_eps 1e-06
rope_parameters {"sliding_attention":{"rope_type":"default","rope_theta":10000.0},"full_attention":null}
routed_scaling_factor 2.5
sliding_window 512
tie_word_embeddings false
topk_group 4
vocab_size 151936
)"},
{"beit", R"(add_fpn false
attention_chunk_size null
attention_probs_dropout_prob 0.0
auxiliary_channels 256
auxiliary_concat_input false
auxiliary_loss_weight 0.4
auxiliary_num_convs 1
drop_path_rate 0.1
hidden_act "gelu"
hidden_dropout_prob 0.0
hidden_size 768
image_size 224
!initializer_range
intermediate_size 3072
layer_norm_eps 1e-12
layer_scale_init_value 0.1
layer_types null
num_attention_heads 12
num_channels 3
num_hidden_layers 12
out_features ["stage12"]
out_indices [12]
patch_size 16
pool_scales [1,2,3,6]
reshape_hidden_states true
segmentation_indices null
semantic_loss_ignore_index 255
sliding_window null
!stage_names
use_absolute_position_embeddings false
use_auxiliary_head true
use_mask_token false
use_mean_pooling true
use_relative_position_bias false
use_shared_relative_position_bias false
vocab_size 8192
)"},
{"bert", R"(add_cross_attention false
attention_chunk_size null
attention_probs_dropout_prob 0.1
classifier_dropout null
hidden_act "gelu"
hidden_dropout_prob 0.1
hidden_size 768
!initializer_range
intermediate_size 3072
is_decoder false
layer_norm_eps 1e-12
layer_types null
max_position_embeddings 512
num_attention_heads 12
num_hidden_layers 12
pad_token_id 0
sliding_window null
tie_word_embeddings true
type_vocab_size 2
vocab_size 30522
)"},
{"bert-generation", R"(add_cross_attention false
attention_chunk_size null
attention_probs_dropout_prob 0.1
hidden_act "gelu"
hidden_dropout_prob 0.1
hidden_size 1024
!initializer_range
intermediate_size 4096
is_decoder false
layer_norm_eps 1e-12
layer_types null
max_position_embeddings 512
num_attention_heads 16
num_hidden_layers 24
pad_token_id 0
sliding_window null
tie_word_embeddings true
vocab_size 50358
)"},
{"big_bird", R"(add_cross_attention false
attention_chunk_size null
attention_probs_dropout_prob 0.1
attention_type "block_sparse"
block_size 64
classifier_dropout null
hidden_act "gelu_new"
hidden_dropout_prob 0.1
hidden_size 768
!initializer_range
intermediate_size 3072
is_decoder false
layer_norm_eps 1e-12
layer_types null
max_position_embeddings 4096
num_attention_heads 12
num_hidden_layers 12
num_random_blocks 3
pad_token_id 0
rescale_embeddings false
sep_token_id 66
sliding_window null
tie_word_embeddings true
type_vocab_size 2
use_bias true
vocab_size 50358
)"},
{"bigbird_pegasus", R"(=attention_probs_dropout_prob attention_dropout
=hidden_size d_model
=num_attention_heads encoder_attention_heads
=num_hidden_layers encoder_layers
activation_dropout 0.0
activation_function "gelu_new"
attention_chunk_size null
attention_dropout 0.0
attention_type "block_sparse"
block_size 64
classifier_dropout 0.0
d_model 1024
decoder_attention_heads 16
decoder_ffn_dim 4096
decoder_layerdrop 0.0
decoder_layers 16
decoder_start_token_id 2
dropout 0.1
encoder_attention_heads 16
encoder_ffn_dim 4096
encoder_layerdrop 0.0
encoder_layers 16
!init_std
is_decoder false
layer_types null
max_position_embeddings 4096
num_random_blocks 3
pad_token_id 0
scale_embedding true
sliding_window null
tie_word_embeddings true
use_bias false
vocab_size 96103
)"},
{"biogpt", R"(activation_dropout 0.0
attention_chunk_size null
attention_probs_dropout_prob 0.1
hidden_act "gelu"
hidden_dropout_prob 0.1
hidden_size 1024
!initializer_range
intermediate_size 4096
!layer_norm_eps
layer_types null
layerdrop 0.0
max_position_embeddings 1024
num_attention_heads 16
num_hidden_layers 24
pad_token_id 1
scale_embedding true
sliding_window null
tie_word_embeddings true
vocab_size 42384
)"},
{"bit", R"(attention_chunk_size null
depths [3,4,6,3]
drop_path_rate 0.0
embedding_dynamic_padding false
embedding_size 64
global_padding null
hidden_act "relu"
hidden_sizes [256,512,1024,2048]
layer_type "preactivation"
layer_types null
num_channels 3
num_groups 32
out_features ["stage4"]
out_indices [4]
output_stride 32
sliding_window null
!stage_names
width_factor 1
)"},
{"bitnet", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
hidden_act "relu2"
hidden_size 2560
!initializer_range
intermediate_size 6912
layer_types null
max_position_embeddings 2048
num_attention_heads 20
num_hidden_layers 30
num_key_value_heads 5
pad_token_id null
rms_norm_eps 1e-05
rope_parameters {"rope_theta":500000.0,"rope_type":"default"}
sliding_window null
tie_word_embeddings false
vocab_size 128256
)"},
{"blenderbot", R"(=hidden_size d_model
=num_attention_heads encoder_attention_heads
=num_hidden_layers encoder_layers
activation_dropout 0.0
activation_function "gelu"
attention_chunk_size null
attention_dropout 0.0
d_model 2560
decoder_attention_heads 32
decoder_ffn_dim 10240
decoder_layerdrop 0.0
decoder_layers 24
decoder_start_token_id 1
dropout 0.1
encoder_attention_heads 32
encoder_ffn_dim 10240
encoder_layerdrop 0.0
encoder_layers 2
!encoder_no_repeat_ngram_size
!forced_eos_token_id
!init_std
is_decoder false
layer_types null
max_position_embeddings 128
pad_token_id 0
scale_embedding false
sliding_window null
tie_word_embeddings true
vocab_size 8008
)"},
{"blenderbot-small", R"(=hidden_size d_model
=num_attention_heads encoder_attention_heads
=num_hidden_layers encoder_layers
activation_dropout 0.0
activation_function "gelu"
attention_chunk_size null
attention_dropout 0.0
d_model 512
decoder_attention_heads 16
decoder_ffn_dim 2048
decoder_layerdrop 0.0
decoder_layers 8
decoder_start_token_id 1
dropout 0.1
encoder_attention_heads 16
encoder_ffn_dim 2048
encoder_layerdrop 0.0
encoder_layers 8
!forced_eos_token_id
!init_std
is_decoder false
layer_types null
max_position_embeddings 512
pad_token_id 0
scale_embedding false
sliding_window null
tie_word_embeddings true
vocab_size 50265
)"},
{"blip", R"(attention_chunk_size null
image_text_hidden_size 256
!initializer_factor
initializer_range 0.02
label_smoothing 0.0
layer_types null
logit_scale_init_value 2.6592
projection_dim 512
sliding_window null
tie_word_embeddings true
)"},
{"blip-2", R"(=image_token_id image_token_index
attention_chunk_size null
image_text_hidden_size 256
image_token_index null
!initializer_factor
initializer_range 0.02
layer_types null
num_query_tokens 32
sliding_window null
use_decoder_only_language_model true
)"},
{"blip_2_qformer", R"(attention_chunk_size null
attention_probs_dropout_prob 0.1
cross_attention_frequency 2
encoder_hidden_size 1408
hidden_act "gelu"
hidden_dropout_prob 0.1
hidden_size 768
initializer_range 0.02
intermediate_size 3072
layer_norm_eps 1e-12
layer_types null
max_position_embeddings 512
num_attention_heads 12
num_hidden_layers 12
pad_token_id 0
sliding_window null
use_qformer_text_input false
vocab_size 30522
)"},
{"blip_2_vision_model", R"(attention_chunk_size null
attention_dropout 0.0
hidden_act "gelu"
hidden_size 1408
image_size 224
initializer_range 1e-10
intermediate_size 6144
layer_norm_eps 1e-06
layer_types null
num_attention_heads 16
num_hidden_layers 39
patch_size 14
qkv_bias true
sliding_window null
)"},
{"blip_text_model", R"(attention_chunk_size null
attention_probs_dropout_prob 0.0
encoder_hidden_size 768
hidden_act "gelu"
hidden_dropout_prob 0.0
hidden_size 768
initializer_range 0.02
intermediate_size 3072
is_decoder true
label_smoothing 0.0
layer_norm_eps 1e-12
layer_types null
max_position_embeddings 512
num_attention_heads 8
num_hidden_layers 12
pad_token_id 0
projection_dim 768
sep_token_id 102
sliding_window null
tie_word_embeddings true
vocab_size 30524
)"},
{"blip_vision_model", R"(attention_chunk_size null
attention_dropout 0.0
hidden_act "gelu"
hidden_size 768
image_size 384
initializer_range 1e-10
intermediate_size 3072
layer_norm_eps 1e-05
layer_types null
num_attention_heads 12
num_hidden_layers 12
patch_size 16
projection_dim 512
sliding_window null
)"},
{"bloom", R"(=num_attention_heads n_head
=num_hidden_layers n_layer
apply_residual_connection_post_layernorm false
attention_chunk_size null
attention_dropout 0.0
hidden_dropout 0.0
hidden_size 64
!initializer_range
layer_norm_epsilon 1e-05
layer_types null
n_embed null
n_head 8
n_layer 2
pad_token_id null
pretraining_tp 1
sliding_window null
slow_but_exact false
tie_word_embeddings true
vocab_size 250880
)"},
{"blt", R"(attention_chunk_size null
cross_attn_k 2
encoder_hash_byte_group_nb_functions 1
encoder_hash_byte_group_size [3,4,5,6,7,8]
encoder_hash_byte_group_vocab 500002
!initializer_range
layer_types null
local_attention_window_len 512
max_patch_length null
max_position_embeddings 4096
pad_token_id null
patch_in_forward true
patch_size 4
patching_batch_size 1
patching_mode "entropy"
patching_threshold 1.335442066192627
rope_parameters {"rope_theta":500000.0,"rope_type":"default"}
sliding_window null
tie_word_embeddings false
vocab_size 260
)"},
{"blt_global_transformer", R"(attention_chunk_size null
dropout 0.0
head_dim 128
hidden_act "silu"
hidden_size 2048
!initializer_range
intermediate_size 5632
layer_types null
max_position_embeddings 4096
num_attention_heads 16
num_hidden_layers 25
num_key_value_heads 16
rms_norm_eps 1e-05
rope_parameters {"rope_theta":500000.0,"rope_type":"default"}
sliding_window null
tie_word_embeddings false
)"},
{"blt_local_decoder", R"(attention_chunk_size null
cross_attn_all_layers true
cross_attn_k 2
dropout 0.0
head_dim 64
hidden_act "silu"
hidden_size 1024
hidden_size_global 2048
!initializer_range
intermediate_size 2816
layer_types null
max_position_embeddings 24576
num_attention_heads 16
num_hidden_layers 9
num_key_value_heads 16
pad_token_id null
rms_norm_eps 1e-05
rope_parameters {"rope_theta":500000.0,"rope_type":"default"}
sliding_window null
tie_word_embeddings false
vocab_size 260
)"},
{"blt_local_encoder", R"(attention_chunk_size null
cross_attn_all_layers false
cross_attn_k 2
dropout 0.0
hidden_act "silu"
hidden_size 1024
hidden_size_global 2048
!initializer_range
intermediate_size 2730
layer_types null
max_position_embeddings 24576
num_attention_heads 16
num_hidden_layers 1
num_key_value_heads 16
rms_norm_eps 1e-05
rope_parameters {"rope_theta":500000.0,"rope_type":"default"}
sliding_window null
tie_word_embeddings false
vocab_size 260
)"},
{"blt_patcher", R"(attention_chunk_size null
dropout 0.0
head_dim 64
hidden_act "silu"
hidden_size 768
!initializer_range
intermediate_size 2048
layer_types null
max_position_embeddings 8192
num_attention_heads 12
num_hidden_layers 14
num_key_value_heads 12
rms_norm_eps 1e-05
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
sliding_window 512
tie_word_embeddings false
vocab_size 260
)"},
{"camembert", R"(add_cross_attention false
attention_chunk_size null
attention_probs_dropout_prob 0.1
classifier_dropout null
hidden_act "gelu"
hidden_dropout_prob 0.1
hidden_size 768
!initializer_range
intermediate_size 3072
is_decoder false
layer_norm_eps 1e-12
layer_types null
max_position_embeddings 512
num_attention_heads 12
num_hidden_layers 12
pad_token_id 1
sliding_window null
tie_word_embeddings true
type_vocab_size 2
vocab_size 30522
)"},
{"canine", R"(attention_chunk_size null
attention_probs_dropout_prob 0.1
downsampling_rate 4
hidden_act "gelu"
hidden_dropout_prob 0.1
hidden_size 768
!initializer_range
intermediate_size 3072
layer_norm_eps 1e-12
layer_types null
local_transformer_stride 128
max_position_embeddings 16384
num_attention_heads 12
num_hash_buckets 16384
num_hash_functions 8
num_hidden_layers 12
pad_token_id 0
sliding_window null
type_vocab_size 16
upsampling_kernel_size 4
)"},
{"chameleon", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
hidden_act "silu"
hidden_size 4096
!image_token_id
!initializer_range
intermediate_size 11008
layer_types null
max_position_embeddings 4096
mlp_bias false
model_parallel_size 1
num_attention_heads 32
num_hidden_layers 32
num_key_value_heads 32
pad_token_id null
rms_norm_eps 1e-05
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
sliding_window null
swin_norm false
tie_word_embeddings false
vocab_size 65536
vocabulary_map null
)"},
{"chameleon_vqgan", R"(attention_chunk_size null
attn_resolutions null
attn_type "vanilla"
base_channels 128
channel_multiplier [1,1,2,2,4]
double_latent false
dropout 0.0
embed_dim 256
in_channels 3
latent_channels 256
layer_types null
num_embeddings 8192
num_res_blocks 2
resolution 512
sliding_window null
)"},
{"chinese_clip", R"(attention_chunk_size null
initializer_factor 1.0
initializer_range 0.02
layer_types null
logit_scale_init_value 2.6592
projection_dim 512
sliding_window null
text_config_dict null
vision_config_dict null
)"},
{"chinese_clip_text_model", R"(attention_chunk_size null
attention_probs_dropout_prob 0.1
hidden_act "gelu"
hidden_dropout_prob 0.1
hidden_size 768
initializer_factor 1.0
initializer_range 0.02
intermediate_size 3072
layer_norm_eps 1e-12
layer_types null
max_position_embeddings 512
num_attention_heads 12
num_hidden_layers 12
pad_token_id 0
sliding_window null
text_config_dict null
type_vocab_size 2
vision_config_dict null
vocab_size 30522
)"},
{"chinese_clip_vision_model", R"(attention_chunk_size null
attention_dropout 0.0
hidden_act "quick_gelu"
hidden_size 768
image_size 224
initializer_factor 1.0
initializer_range 0.02
intermediate_size 3072
layer_norm_eps 1e-05
layer_types null
num_attention_heads 12
num_channels 3
num_hidden_layers 12
patch_size 32
projection_dim 512
sliding_window null
text_config_dict null
vision_config_dict null
)"},
{"clip", R"(attention_chunk_size null
initializer_factor 1.0
layer_types null
logit_scale_init_value 2.6592
projection_dim 512
sliding_window null
text_config_dict null
vision_config_dict null
)"},
{"clip_text_model", R"(attention_chunk_size null
attention_dropout 0.0
hidden_act "quick_gelu"
hidden_size 512
initializer_factor 1.0
initializer_range 0.02
intermediate_size 2048
layer_norm_eps 1e-05
layer_types null
max_position_embeddings 77
num_attention_heads 8
num_hidden_layers 12
pad_token_id 1
projection_dim 512
sliding_window null
text_config_dict null
vision_config_dict null
vocab_size 49408
)"},
{"clip_vision_model", R"(attention_chunk_size null
attention_dropout 0.0
hidden_act "quick_gelu"
hidden_size 768
image_size 224
initializer_factor 1.0
initializer_range 0.02
intermediate_size 3072
layer_norm_eps 1e-05
layer_types null
num_attention_heads 12
num_channels 3
num_hidden_layers 12
patch_size 32
projection_dim 512
sliding_window null
text_config_dict null
vision_config_dict null
)"},
{"clipseg", R"(attention_chunk_size null
conditional_layer 0
!decoder_attention_dropout
!decoder_hidden_act
decoder_intermediate_size 2048
decoder_num_attention_heads 4
extract_layers [3,6,9]
initializer_factor 1.0
layer_types null
logit_scale_init_value 2.6592
projection_dim 512
reduce_dim 64
sliding_window null
text_config_dict null
use_complex_transposed_convolution false
vision_config_dict null
)"},
{"clipseg_text_model", R"(attention_chunk_size null
attention_dropout 0.0
hidden_act "quick_gelu"
hidden_size 512
initializer_factor 1.0
initializer_range 0.02
intermediate_size 2048
layer_norm_eps 1e-05
layer_types null
max_position_embeddings 77
num_attention_heads 8
num_hidden_layers 12
pad_token_id 1
sliding_window null
text_config_dict null
vision_config_dict null
vocab_size 49408
)"},
{"clipseg_vision_model", R"(attention_chunk_size null
attention_dropout 0.0
hidden_act "quick_gelu"
hidden_size 768
image_size 224
initializer_factor 1.0
initializer_range 0.02
intermediate_size 3072
layer_norm_eps 1e-05
layer_types null
num_attention_heads 12
num_channels 3
num_hidden_layers 12
patch_size 32
sliding_window null
text_config_dict null
vision_config_dict null
)"},
{"codegen", R"(=hidden_size n_embd
=max_position_embeddings n_positions
=num_attention_heads n_head
=num_hidden_layers n_layer
activation_function "gelu_new"
attention_chunk_size null
attn_pdrop 0.0
embd_pdrop 0.0
!initializer_range
layer_norm_epsilon 1e-05
layer_types null
!n_ctx
n_embd 4096
n_head 16
n_inner null
n_layer 28
n_positions 2048
resid_pdrop 0.0
rotary_dim 64
sliding_window null
tie_word_embeddings false
vocab_size 50400
)"},
{"cohere", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
hidden_act "silu"
hidden_size 8192
!initializer_range
intermediate_size 22528
layer_norm_eps 1e-05
layer_types null
logit_scale 0.0625
max_position_embeddings 8192
num_attention_heads 64
num_hidden_layers 40
num_key_value_heads 64
pad_token_id 0
rope_parameters {"rope_theta":500000.0,"rope_type":"default"}
sliding_window null
tie_word_embeddings true
use_qk_norm false
vocab_size 256000
)"},
{"cohere2", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
head_dim 128
hidden_act "silu"
hidden_size 8192
!initializer_range
intermediate_size 22528
layer_norm_eps 1e-05
layer_types ["sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention"]
logit_scale 0.0625
max_position_embeddings 8192
num_attention_heads 64
num_hidden_layers 40
num_key_value_heads 64
pad_token_id 0
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
sliding_window 4096
sliding_window_pattern null
tie_word_embeddings true
vocab_size 256000
)"},
{"cohere2_moe", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
expert_selection_fn "softmax"
first_k_dense_replace null
head_dim 128
hidden_act "silu"
hidden_size 8192
initializer_range 0.02
intermediate_size 22528
layer_norm_eps 1e-05
layer_types ["sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention"]
logit_scale 0.0625
max_position_embeddings 8192
mlp_layer_types ["sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse"]
norm_topk_prob true
num_attention_heads 64
num_experts 8
num_experts_per_tok 2
num_hidden_layers 40
num_key_value_heads 64
num_shared_experts 0
!output_router_logits
pad_token_id 0
prefix_dense_intermediate_size null
prefix_dense_sliding_window_pattern 1
rms_norm_eps null
rope_parameters {"rope_type":"default","rope_theta":10000.0}
!rope_scaling
!rope_theta
shared_expert_combination_strategy "average"
sliding_window 4096
sliding_window_pattern 4
tie_word_embeddings true
vocab_size 256000
)"},
{"cohere2_vision", R"(alignment_intermediate_size 36864
attention_chunk_size null
downsample_factor 2
image_token_id 255036
layer_types null
sliding_window null
tie_word_embeddings true
)"},
{"cohere_compass", R"(attention_chunk_size null
image_token_id 255031
layer_types null
sliding_window null
sliding_window_pattern null
tie_word_embeddings false
video_token_id 255032
!vision_end_token_id
!vision_start_token_id
)"},
{"cohere_compass_text", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
head_dim 128
hidden_act "silu"
hidden_size 8192
!initializer_range
intermediate_size 22528
layer_norm_eps 1e-05
layer_types ["full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention"]
logit_scale null
max_position_embeddings 8192
num_attention_heads 64
num_hidden_layers 40
num_key_value_heads 64
pad_token_id 0
pooling null
rope_parameters {}
sliding_window 4096
sliding_window_pattern null
tie_word_embeddings true
vocab_size 256000
)"},
{"cohere_compass_vision", R"(=num_attention_heads num_heads
=num_hidden_layers depth
attention_chunk_size null
deepstack_visual_indexes [8,16,24]
depth 27
hidden_act "gelu_pytorch_tanh"
hidden_size 1152
in_channels 3
!initializer_range
intermediate_size 4304
layer_types null
num_heads 16
num_position_embeddings 2304
out_hidden_size 3584
patch_size 16
rope_parameters {"rope_theta":10000.0,"rope_type":"axial"}
sliding_window null
sliding_window_pattern null
spatial_merge_size 2
temporal_patch_size 2
)"},
{"convbert", R"(add_cross_attention false
attention_chunk_size null
attention_probs_dropout_prob 0.1
classifier_dropout null
conv_kernel_size 9
embedding_size 768
head_ratio 2
hidden_act "gelu"
hidden_dropout_prob 0.1
hidden_size 768
initializer_range 0.02
intermediate_size 3072
is_decoder false
layer_norm_eps 1e-12
layer_types null
max_position_embeddings 512
num_attention_heads 12
num_groups 1
num_hidden_layers 12
pad_token_id 1
sliding_window null
tie_word_embeddings true
type_vocab_size 2
vocab_size 30522
)"},
{"convnext", R"(=num_hidden_layers num_stages
attention_chunk_size null
depths [3,3,9,3]
drop_path_rate 0.0
hidden_act "gelu"
hidden_sizes [96,192,384,768]
!image_size
!initializer_range
layer_norm_eps 1e-12
layer_scale_init_value 1e-06
layer_types null
num_channels 3
num_stages 4
out_features ["stage4"]
out_indices [4]
patch_size 4
sliding_window null
!stage_names
)"},
{"convnextv2", R"(=num_hidden_layers num_stages
attention_chunk_size null
depths [3,3,9,3]
drop_path_rate 0.0
hidden_act "gelu"
hidden_sizes [96,192,384,768]
!image_size
!initializer_range
layer_norm_eps 1e-12
layer_types null
num_channels 3
num_stages 4
out_features ["stage4"]
out_indices [4]
patch_size 4
sliding_window null
!stage_names
)"},
{"cosmos3_edge", R"(attention_chunk_size null
image_token_id 19
layer_types null
projector_hidden_size 11520
sliding_window null
tie_word_embeddings false
video_token_id 18
!vision_end_token_id
!vision_start_token_id
)"},
{"cosmos3_edge_text", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
head_dim 128
hidden_act "relu2"
hidden_size 2048
!initializer_range
intermediate_size 9216
layer_types null
max_position_embeddings 131072
mlp_bias false
num_attention_heads 16
num_hidden_layers 28
num_key_value_heads 8
pad_token_id 0
!pretraining_tp
rms_norm_eps 1e-05
rope_parameters {"rope_type":"default","rope_theta":100000000.0,"mrope_section":[24,20,20]}
sliding_window null
tie_word_embeddings false
vocab_size 131072
)"},
{"cosmos3_edge_vision", R"(attention_chunk_size null
attention_dropout 0.0
hidden_act "gelu_pytorch_tanh"
hidden_size 1152
intermediate_size 4304
layer_norm_eps 1e-06
layer_types null
num_attention_heads 16
num_channels 3
num_hidden_layers 27
num_patches 256
patch_size 16
sliding_window null
spatial_merge_size 2
)"},
{"cosmos3_omni", R"(attention_chunk_size null
image_token_id 151655
layer_types null
sliding_window null
tie_word_embeddings false
video_token_id 151656
!vision_end_token_id
!vision_start_token_id
)"},
{"cpmant", R"(attention_chunk_size null
dim_ff 10240
dim_head 128
dropout_p 0.0
eps 1e-06
hidden_size 4096
init_std 1.0
layer_types null
num_attention_heads 32
num_hidden_layers 48
position_bias_max_distance 2048
position_bias_num_buckets 512
prompt_length 32
prompt_types 32
segment_types 32
sliding_window null
tie_word_embeddings true
vocab_size 30720
)"},
{"ctrl", R"(=hidden_size n_embd
=max_position_embeddings n_positions
=num_attention_heads n_head
=num_hidden_layers n_layer
attention_chunk_size null
dff 8192
embd_pdrop 0.1
!initializer_range
layer_norm_epsilon 1e-06
layer_types null
n_embd 1280
n_head 16
n_layer 48
n_positions 256
pad_token_id null
resid_pdrop 0.1
sliding_window null
tie_word_embeddings true
vocab_size 246534
)"},
{"cvt", R"(attention_chunk_size null
attention_drop_rate [0.0,0.0,0.0]
cls_token [false,false,true]
depth [1,2,10]
drop_path_rate [0.0,0.0,0.1]
drop_rate [0.0,0.0,0.0]
embed_dim [64,192,384]
initializer_range 0.02
kernel_qkv [3,3,3]
!layer_norm_eps
layer_types null
mlp_ratio [4.0,4.0,4.0]
num_channels 3
num_heads [1,3,6]
padding_kv [1,1,1]
padding_q [1,1,1]
patch_padding [2,1,1]
patch_sizes [7,3,3]
patch_stride [4,2,2]
qkv_bias [true,true,true]
qkv_projection_method ["dw_bn","dw_bn","dw_bn"]
sliding_window null
stride_kv [2,2,2]
stride_q [1,1,1]
)"},
{"cwm", R"(attention_chunk_size null
attention_dropout 0.0
head_dim 128
hidden_act "silu"
hidden_size 6144
!initializer_range
intermediate_size 21504
layer_types ["full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention"]
max_position_embeddings 131072
mlp_bias false
num_attention_heads 48
num_hidden_layers 64
num_key_value_heads 8
pad_token_id null
!pretraining_tp
rms_norm_eps 1e-05
rope_parameters {"rope_theta":1000000.0,"factor":16.0,"high_freq_factor":4.0,"low_freq_factor":1.0,"original_max_position_embeddings":8192,"rope_type":"llama3"}
sliding_window 8192
tie_word_embeddings false
vocab_size 128256
)"},
{"data2vec-text", R"(add_cross_attention false
attention_chunk_size null
attention_probs_dropout_prob 0.1
classifier_dropout null
hidden_act "gelu"
hidden_dropout_prob 0.1
hidden_size 768
!initializer_range
intermediate_size 3072
is_decoder false
layer_norm_eps 1e-12
layer_types null
max_position_embeddings 512
num_attention_heads 12
num_hidden_layers 12
pad_token_id 1
sliding_window null
tie_word_embeddings true
type_vocab_size 2
vocab_size 30522
)"},
{"data2vec-vision", R"(attention_chunk_size null
attention_probs_dropout_prob 0.0
auxiliary_channels 256
auxiliary_concat_input false
auxiliary_loss_weight 0.4
auxiliary_num_convs 1
drop_path_rate 0.1
hidden_act "gelu"
hidden_dropout_prob 0.0
hidden_size 768
image_size 224
!initializer_range
intermediate_size 3072
layer_norm_eps 1e-12
layer_scale_init_value 0.1
layer_types null
num_attention_heads 12
num_channels 3
num_hidden_layers 12
out_indices [3,5,7,11]
patch_size 16
pool_scales [1,2,3,6]
semantic_loss_ignore_index 255
sliding_window null
use_absolute_position_embeddings false
use_auxiliary_head true
use_mask_token false
use_mean_pooling true
use_relative_position_bias false
use_shared_relative_position_bias false
)"},
{"dbrx", R"(=hidden_size d_model
=max_position_embeddings max_seq_len
=num_attention_heads n_heads
=num_hidden_layers n_layers
attention_chunk_size null
d_model 2048
emb_pdrop 0.0
initializer_range 0.02
layer_types null
max_seq_len 2048
n_heads 16
n_layers 24
!num_key_value_heads
output_router_logits false
pad_token_id null
resid_pdrop 0.0
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
sliding_window null
tie_word_embeddings false
vocab_size 32000
)"},
{"deberta", R"(attention_chunk_size null
attention_probs_dropout_prob 0.1
hidden_act "gelu"
hidden_dropout_prob 0.1
hidden_size 768
!initializer_range
intermediate_size 3072
layer_norm_eps 1e-07
layer_types null
legacy true
max_position_embeddings 512
max_relative_positions -1
num_attention_heads 12
num_hidden_layers 12
pad_token_id 0
pooler_dropout 0.0
pooler_hidden_act "gelu"
pooler_hidden_size 768
pos_att_type null
position_biased_input true
relative_attention false
sliding_window null
tie_word_embeddings true
type_vocab_size 0
vocab_size 50265
)"},
{"deberta-v2", R"(attention_chunk_size null
attention_probs_dropout_prob 0.1
hidden_act "gelu"
hidden_dropout_prob 0.1
hidden_size 1536
!initializer_range
intermediate_size 6144
layer_norm_eps 1e-07
layer_types null
legacy true
max_position_embeddings 512
max_relative_positions -1
num_attention_heads 24
num_hidden_layers 24
pad_token_id 0
pooler_dropout 0.0
pooler_hidden_act "gelu"
pooler_hidden_size 1536
pos_att_type null
position_biased_input true
relative_attention false
sliding_window null
tie_word_embeddings true
type_vocab_size 0
vocab_size 128100
)"},
{"deepseek_ocr2", R"(attention_chunk_size null
image_token_id 128815
layer_types null
sliding_window null
tie_word_embeddings false
)"},
{"deepseek_ocr2_encoder", R"(attention_chunk_size null
attention_dropout 0.0
hidden_act "silu"
hidden_size 4096
initializer_range 0.02
intermediate_size 22016
layer_types ["full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention"]
max_position_embeddings 32768
max_window_layers 28
num_attention_heads 32
num_hidden_layers 32
num_key_value_heads 32
pad_token_id null
rms_norm_eps 1e-06
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
sliding_window null
tie_word_embeddings false
use_sliding_window false
vocab_size 151936
)"},
{"deepseek_ocr2_sam_vision_model", R"(attention_chunk_size null
attention_dropout 0.0
downsample_channels [512,896]
global_attn_indexes [2,5,8,11]
hidden_act "gelu"
hidden_size 768
image_size 1024
initializer_range 1e-10
layer_norm_eps 1e-06
layer_types null
mlp_dim 3072
mlp_ratio 4.0
num_attention_heads 12
num_channels 3
num_hidden_layers 12
output_channels 256
patch_size 16
qkv_bias true
!scale
sliding_window null
use_abs_pos true
use_rel_pos true
window_size 14
)"},
{"deepseek_ocr2_text", R"(=num_experts n_routed_experts
attention_bias false
attention_chunk_size null
attention_dropout 0.0
head_dim 128
hidden_act "silu"
hidden_size 4096
initializer_range 0.02
intermediate_size 11008
layer_types null
max_position_embeddings 2048
mlp_bias false
mlp_layer_types null
moe_intermediate_size 1407
n_group null
n_routed_experts 64
n_shared_experts 2
num_attention_heads 32
num_experts_per_tok null
num_hidden_layers 32
num_key_value_heads 32
!output_router_logits
pad_token_id null
!pretraining_tp
rms_norm_eps 1e-06
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
routed_scaling_factor 1.0
sliding_window null
tie_word_embeddings false
topk_group null
topk_method "greedy"
vocab_size 102400
)"},
{"deepseek_ocr2_vision", R"(attention_chunk_size null
layer_types null
sliding_window null
)"},
{"deepseek_v2", R"(=num_experts n_routed_experts
attention_bias false
attention_chunk_size null
attention_dropout 0.0
first_k_dense_replace 0
head_dim 64
hidden_act "silu"
hidden_size 4096
initializer_range 0.02
intermediate_size 11008
kv_lora_rank 512
layer_types null
max_position_embeddings 2048
mlp_bias false
moe_intermediate_size 1407
n_group null
n_routed_experts 64
n_shared_experts 2
!norm_topk_prob
num_attention_heads 32
num_experts_per_tok null
num_hidden_layers 32
num_key_value_heads 32
!output_router_logits
pad_token_id null
!pretraining_tp
q_lora_rank 1536
!qk_head_dim
qk_nope_head_dim 128
qk_rope_head_dim 64
rms_norm_eps 1e-06
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
routed_scaling_factor 1.0
sliding_window null
tie_word_embeddings false
topk_group null
topk_method "greedy"
v_head_dim 128
vocab_size 102400
)"},
{"deepseek_v3", R"(=num_local_experts n_routed_experts
=num_mtp_layers num_nextn_predict_layers
attention_bias false
attention_chunk_size null
attention_dropout 0.0
first_k_dense_replace 3
head_dim 64
hidden_act "silu"
hidden_size 7168
initializer_range 0.02
intermediate_size 18432
kv_lora_rank 512
layer_types null
max_position_embeddings 4096
moe_intermediate_size 2048
n_group 8
n_routed_experts 256
n_shared_experts 1
norm_topk_prob true
num_attention_heads 128
num_experts_per_tok 8
num_hidden_layers 61
num_key_value_heads 128
num_nextn_predict_layers 1
!output_router_logits
pad_token_id null
!pretraining_tp
q_lora_rank 1536
!qk_head_dim
qk_nope_head_dim 128
qk_rope_head_dim 64
rms_norm_eps 1e-06
rope_interleave true
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
routed_scaling_factor 2.5
sliding_window null
tie_word_embeddings false
topk_group 4
v_head_dim 128
vocab_size 129280
)"},
{"deepseek_v32", R"(=num_local_experts n_routed_experts
attention_bias false
attention_chunk_size null
attention_dropout 0.0
first_k_dense_replace 3
head_dim 64
hidden_act "silu"
hidden_size 7168
index_head_dim 128
index_n_heads 64
index_topk 2048
initializer_range 0.02
intermediate_size 18432
kv_lora_rank 512
layer_types ["indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention"]
max_position_embeddings 163840
!mlp_bias
mlp_layer_types ["dense","dense","dense","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse"]
moe_intermediate_size 2048
n_group 8
n_routed_experts 256
n_shared_experts 1
norm_topk_prob true
num_attention_heads 128
num_experts null
num_experts_per_tok 8
num_hidden_layers 61
num_key_value_heads 128
!output_router_logits
pad_token_id null
q_lora_rank 1536
!qk_head_dim
qk_nope_head_dim 128
qk_rope_head_dim 64
rms_norm_eps 1e-06
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
routed_scaling_factor 2.5
sliding_window null
tie_word_embeddings false
topk_group 4
v_head_dim 128
vocab_size 129280
)"},
{"deepseek_v4", R"(=intermediate_size moe_intermediate_size
=num_local_experts n_routed_experts
!attention_bias
attention_chunk_size null
attention_dropout 0.0
compress_rate_csa null
compress_rate_hca null
compress_rates {"compressed_sparse_attention":4,"heavily_compressed_attention":128}
compress_ratios null
compress_rope_theta 160000.0
hc_eps 1e-06
hc_mult 4
hc_sinkhorn_iters 20
head_dim 512
hidden_act "silu"
hidden_size 4096
index_head_dim 128
index_n_heads 64
index_topk 512
initializer_range 0.02
layer_types ["heavily_compressed_attention","heavily_compressed_attention","heavily_compressed_attention","compressed_sparse_attention","heavily_compressed_attention","compressed_sparse_attention","heavily_compressed_attention","compressed_sparse_attention","heavily_compressed_attention","compressed_sparse_attention","heavily_compressed_attention","compressed_sparse_attention","heavily_compressed_attention","compressed_sparse_attention","heavily_compressed_attention","compressed_sparse_attention","heavily_compressed_attention","compressed_sparse_attention","heavily_compressed_attention","compressed_sparse_attention","heavily_compressed_attention","compressed_sparse_attention","heavily_compressed_attention","compressed_sparse_attention","heavily_compressed_attention","compressed_sparse_attention","heavily_compressed_attention","compressed_sparse_attention","heavily_compressed_attention","compressed_sparse_attention","heavily_compressed_attention","compressed_sparse_attention","heavily_compressed_attention","compressed_sparse_attention","heavily_compressed_attention","compressed_sparse_attention","heavily_compressed_attention","compressed_sparse_attention","heavily_compressed_attention","compressed_sparse_attention","heavily_compressed_attention","compressed_sparse_attention","heavily_compressed_attention"]
max_position_embeddings 1048576
mlp_bias false
mlp_layer_types ["hash_moe","hash_moe","hash_moe","moe","moe","moe","moe","moe","moe","moe","moe","moe","moe","moe","moe","moe","moe","moe","moe","moe","moe","moe","moe","moe","moe","moe","moe","moe","moe","moe","moe","moe","moe","moe","moe","moe","moe","moe","moe","moe","moe","moe","moe"]
moe_intermediate_size 2048
n_routed_experts 256
!n_shared_experts
!norm_topk_prob
num_attention_heads 64
num_experts_per_tok 6
num_hash_layers null
num_hidden_layers 43
!num_key_value_heads
!num_nextn_predict_layers
o_groups 8
o_lora_rank 1024
output_router_logits false
pad_token_id null
partial_rotary_factor 0.125
q_lora_rank 1024
qk_rope_head_dim 64
rms_norm_eps 1e-06
rope_parameters {"main":{"rope_type":"default","rope_theta":10000.0,"partial_rotary_factor":0.125},"compress":{"rope_theta":160000.0,"rope_type":"default","partial_rotary_factor":0.125}}
rope_theta 10000.0
routed_scaling_factor 1.5
router_aux_loss_coef 0.001
!router_jitter_noise
scoring_func "sqrtsoftplus"
sliding_window 128
swiglu_limit 10.0
tie_word_embeddings false
vocab_size 129280
)"},
{"deepseek_vl", R"(attention_chunk_size null
image_token_id 100015
layer_types null
sliding_window null
tie_word_embeddings true
)"},
{"deepseek_vl_hybrid", R"(attention_chunk_size null
image_token_id 100015
layer_types null
sliding_window null
tie_word_embeddings true
)"},
{"deit", R"(attention_chunk_size null
attention_probs_dropout_prob 0.0
encoder_stride 16
hidden_act "gelu"
hidden_dropout_prob 0.0
hidden_size 768
image_size 224
initializer_range 0.02
intermediate_size 3072
layer_norm_eps 1e-12
layer_types null
num_attention_heads 12
num_channels 3
num_hidden_layers 12
patch_size 16
pooler_act "tanh"
pooler_output_size 768
qkv_bias true
sliding_window null
)"},
{"diffllama", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
head_dim 64
hidden_act "silu"
hidden_size 2048
!initializer_range
intermediate_size 8192
lambda_std_dev 0.1
layer_types null
max_position_embeddings 2048
num_attention_heads 32
num_hidden_layers 16
num_key_value_heads 32
pad_token_id null
rms_norm_eps 1e-05
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
sliding_window null
tie_word_embeddings false
vocab_size 32000
)"},
{"diffusion_gemma", R"(attention_chunk_size null
!boi_token_id
canvas_length 256
!eoi_token_id
global_head_dim null
image_token_id 258880
initializer_range 0.02
layer_types null
num_global_key_value_heads null
sliding_window null
tie_word_embeddings true
)"},
{"diffusion_gemma_text", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
global_head_dim null
head_dim 256
hidden_activation "gelu_pytorch_tanh"
hidden_size 2304
initializer_range 0.02
intermediate_size 9216
layer_types ["sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention"]
max_position_embeddings 131072
moe_intermediate_size null
num_attention_heads 8
num_experts null
num_global_key_value_heads null
num_hidden_layers 30
num_key_value_heads 4
pad_token_id 0
per_layer_config {"05":{"head_dim":512},"11":{"head_dim":512},"17":{"head_dim":512},"23":{"head_dim":512},"29":{"head_dim":512}}
rms_norm_eps 1e-06
rope_parameters {"sliding_attention":{"rope_type":"default","rope_theta":10000.0},"full_attention":{"rope_type":"proportional","partial_rotary_factor":0.25,"rope_theta":1000000.0}}
sliding_window 512
tie_word_embeddings true
top_k_experts null
use_bidirectional_attention null
vocab_size 262144
)"},
{"dinat", R"(=num_attention_heads num_heads
=num_hidden_layers num_layers
attention_chunk_size null
attention_probs_dropout_prob 0.0
depths [3,4,6,5]
dilations [[1,8,1],[1,4,1,4],[1,2,1,2,1,2],[1,1,1,1,1]]
drop_path_rate 0.1
embed_dim 64
hidden_act "gelu"
hidden_dropout_prob 0.0
hidden_size 512
!initializer_range
kernel_size 7
layer_norm_eps 1e-05
layer_scale_init_value 0.0
layer_types null
mlp_ratio 3.0
num_channels 3
num_heads [2,4,8,16]
num_layers 4
out_features ["stage4"]
out_indices [4]
patch_size 4
qkv_bias true
sliding_window null
!stage_names
)"},
{"dinov2", R"(apply_layernorm true
attention_chunk_size null
attention_probs_dropout_prob 0.0
drop_path_rate 0.0
hidden_act "gelu"
hidden_dropout_prob 0.0
hidden_size 768
image_size 224
initializer_range 0.02
layer_norm_eps 1e-06
layer_types null
layerscale_value 1.0
mlp_ratio 4
num_attention_heads 12
num_channels 3
num_hidden_layers 12
out_features ["stage12"]
out_indices [12]
patch_size 14
qkv_bias true
reshape_hidden_states true
sliding_window null
!stage_names
use_mask_token true
use_swiglu_ffn false
)"},
{"dinov2_with_registers", R"(apply_layernorm true
attention_chunk_size null
attention_probs_dropout_prob 0.0
drop_path_rate 0.0
hidden_act "gelu"
hidden_dropout_prob 0.0
hidden_size 768
image_size 224
initializer_range 0.02
layer_norm_eps 1e-06
layer_types null
layerscale_value 1.0
mlp_ratio 4
num_attention_heads 12
num_channels 3
num_hidden_layers 12
num_register_tokens 4
out_features ["stage12"]
out_indices [12]
patch_size 16
qkv_bias true
reshape_hidden_states true
sliding_window null
!stage_names
use_swiglu_ffn false
)"},
{"dinov3_convnext", R"(attention_chunk_size null
depths [3,3,9,3]
drop_path_rate 0.0
hidden_act "gelu"
hidden_sizes [96,192,384,768]
!image_size
!initializer_range
layer_norm_eps 1e-06
layer_scale_init_value 1e-06
layer_types null
num_channels 3
out_features ["stage4"]
out_indices [4]
sliding_window null
!stage_names
)"},
{"dinov3_vit", R"(apply_layernorm true
attention_chunk_size null
attention_dropout 0.0
drop_path_rate 0.0
hidden_act "gelu"
hidden_size 384
image_size 224
initializer_range 0.02
intermediate_size 1536
key_bias false
layer_norm_eps 1e-05
layer_types null
layerscale_value 1.0
mlp_bias true
num_attention_heads 6
num_channels 3
num_hidden_layers 12
num_register_tokens 0
out_features ["stage12"]
out_indices [12]
patch_size 16
pos_embed_jitter null
pos_embed_rescale 2.0
pos_embed_shift null
proj_bias true
query_bias true
reshape_hidden_states true
rope_theta 100.0
sliding_window null
!stage_names
use_gated_mlp false
value_bias true
)"},
{"distilbert", R"(=hidden_size dim
=num_attention_heads n_heads
=num_hidden_layers n_layers
activation "gelu"
attention_chunk_size null
attention_dropout 0.1
dim 768
dropout 0.1
hidden_dim 3072
!initializer_range
layer_types null
max_position_embeddings 512
n_heads 12
n_layers 6
pad_token_id 0
qa_dropout 0.1
seq_classif_dropout 0.2
sinusoidal_pos_embds false
sliding_window null
tie_word_embeddings true
vocab_size 30522
)"},
{"doge", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
hidden_act "silu"
hidden_dropout 0.0
hidden_size 1024
!initializer_range
intermediate_size 2048
is_moe false
keep_window_size 2048
layer_types null
max_position_embeddings 2048
mlp_bias false
norm_topk_prob false
num_attention_heads 8
num_experts 16384
num_experts_per_tok 64
num_hidden_layers 32
num_key_value_heads 8
output_router_logits false
pad_token_id null
rms_norm_eps 1e-06
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
router_aux_loss_coef 0.001
sliding_window null
tie_word_embeddings false
vocab_size 32768
)"},
{"donut-swin", R"(=num_attention_heads num_heads
=num_hidden_layers num_layers
attention_chunk_size null
attention_probs_dropout_prob 0.0
depths [2,2,6,2]
drop_path_rate 0.1
embed_dim 96
hidden_act "gelu"
hidden_dropout_prob 0.0
hidden_size 768
image_size 224
!initializer_range
layer_norm_eps 1e-05
layer_types null
mlp_ratio 4.0
num_channels 3
num_heads [3,6,12,24]
num_layers 4
patch_size 4
qkv_bias true
sliding_window null
use_absolute_embeddings false
window_size 7
)"},
{"dory", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
head_dim 256
hidden_act "silu"
hidden_size 2560
initializer_range 0.0177
intermediate_size 7168
layer_types ["sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention"]
max_position_embeddings 8192
mlp_bias false
n_input_layers 8
n_output_layers 8
n_recurrent_layers 20
n_recurrent_loops 2
ngpt_alpha_init 0.05
num_attention_heads 16
num_hidden_layers 36
num_key_value_heads 4
pad_token_id null
recurrent_kv_cache_mode "per_loop"
rope_parameters {"full_attention":{"rope_type":"default","rope_theta":10000000.0},"sliding_attention":{"rope_type":"default","rope_theta":10000.0}}
sliding_window 1024
tie_word_embeddings false
vocab_size 131072
)"},
{"dots1", R"(=num_local_experts n_routed_experts
attention_bias false
attention_chunk_size null
attention_dropout 0.0
first_k_dense_replace 0
hidden_act "silu"
hidden_size 4608
initializer_range 0.02
intermediate_size 10944
layer_types ["full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention"]
max_position_embeddings 2048
max_window_layers 62
moe_intermediate_size 1408
n_group 1
n_routed_experts null
n_shared_experts null
norm_topk_prob false
num_attention_heads 32
num_experts_per_tok null
num_hidden_layers 62
num_key_value_heads 32
!output_router_logits
pad_token_id null
rms_norm_eps 1e-06
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
routed_scaling_factor 1.0
sliding_window 4096
tie_word_embeddings false
topk_group 1
vocab_size 152064
)"},
{"dots3_note", R"(adapter_output_size null
attention_chunk_size null
audio_token_id 151720
capacity_factor null
embed_dim null
first_k_dense_replace null
image_token_id 151660
is_causal null
layer_types null
moe_layer_freq null
moe_shared_expert_intermediate_size null
num_heads null
per_layer_config null
pyramid_num_routed null
rope_scaling null
rope_theta null
router_scale null
sliding_window null
sliding_window_size null
swa_qk_rope_head_dim null
swa_rope_theta null
tie_word_embeddings false
use_bias null
use_dsa null
use_sliding_window null
video_token_id 151680
whisper_adapter_in_dim null
whisper_adapter_out_dim null
whisper_config null
)"},
{"dots3_note_audio_encoder", R"(adapter_input_size 1280
adapter_out_dim 5120
adapter_output_size null
attention_bias true
attention_chunk_size null
attention_dropout 0.0
capacity_factor null
conv_output_size 7680
downsample_hidden_size 480
dropout 0.0
embed_dim null
feature_size 128
first_k_dense_replace null
head_dim 64
hidden_act "silu"
hidden_size 1280
hop_length 160
!ignore_keys_at_rope_validation
initializer_range 0.02
intermediate_size 5120
is_causal null
layer_types null
max_position_embeddings 6000
moe_layer_freq null
moe_shared_expert_intermediate_size null
num_attention_heads 20
num_heads null
num_hidden_layers 32
num_key_value_heads 20
per_layer_config null
pyramid_num_routed null
rope_parameters {"rope_theta":10000.0,"partial_rotary_factor":0.5,"rope_type":"default"}
rope_scaling null
rope_theta null
router_scale null
samples_per_token 1280
sampling_rate 16000
sliding_window null
sliding_window_size null
swa_qk_rope_head_dim null
swa_rope_theta null
use_bias null
use_dsa null
use_sliding_window null
whisper_adapter_in_dim null
whisper_adapter_out_dim null
whisper_config null
)"},
{"dots3_note_text", R"(=num_local_experts n_routed_experts
adapter_output_size null
attention_bias false
attention_chunk_size null
attention_dropout 0.0
capacity_factor null
embed_dim null
first_k_dense_replace null
head_dim 256
hidden_act "silu"
hidden_size 5120
index_head_dim 128
index_n_heads 64
index_topk 2048
initializer_range 0.02
intermediate_size 13824
is_causal null
kv_lora_rank 512
layer_types ["indexed_attention","indexed_attention","sliding_attention","sliding_attention","sliding_attention","indexed_attention","sliding_attention","sliding_attention","sliding_attention","indexed_attention","sliding_attention","sliding_attention","sliding_attention","indexed_attention","sliding_attention","sliding_attention","sliding_attention","indexed_attention","sliding_attention","sliding_attention","sliding_attention","indexed_attention","sliding_attention","sliding_attention","sliding_attention","indexed_attention","sliding_attention","sliding_attention","sliding_attention","indexed_attention","sliding_attention","sliding_attention","sliding_attention","indexed_attention","sliding_attention","sliding_attention","sliding_attention","indexed_attention","sliding_attention","sliding_attention","sliding_attention","indexed_attention","sliding_attention","sliding_attention","sliding_attention","indexed_attention"]
max_position_embeddings 524288
mlp_bias false
mlp_layer_types ["dense","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse"]
moe_intermediate_size 1536
moe_layer_freq null
moe_shared_expert_intermediate_size null
n_group 1
n_routed_experts 256
n_shared_experts 1
norm_topk_prob true
num_attention_heads 128
num_experts_per_tok 8
num_heads null
num_hidden_layers 46
num_key_value_heads 128
!output_router_logits
pad_token_id 151659
per_layer_config {"02":{"num_attention_heads":64,"num_key_value_heads":64,"kv_lora_rank":1024,"qk_nope_head_dim":192},"03":{"num_attention_heads":64,"num_key_value_heads":64,"kv_lora_rank":1024,"qk_nope_head_dim":192},"04":{"num_attention_heads":64,"num_key_value_heads":64,"kv_lora_rank":1024,"qk_nope_head_dim":192},"06":{"num_attention_heads":64,"num_key_value_heads":64,"kv_lora_rank":1024,"qk_nope_head_dim":192},"07":{"num_attention_heads":64,"num_key_value_heads":64,"kv_lora_rank":1024,"qk_nope_head_dim":192},"08":{"num_attention_heads":64,"num_key_value_heads":64,"kv_lora_rank":1024,"qk_nope_head_dim":192},"10":{"num_attention_heads":64,"num_key_value_heads":64,"kv_lora_rank":1024,"qk_nope_head_dim":192},"11":{"num_attention_heads":64,"num_key_value_heads":64,"kv_lora_rank":1024,"qk_nope_head_dim":192},"12":{"num_attention_heads":64,"num_key_value_heads":64,"kv_lora_rank":1024,"qk_nope_head_dim":192},"14":{"num_attention_heads":64,"num_key_value_heads":64,"kv_lora_rank":1024,"qk_nope_head_dim":192},"15":{"num_attention_heads":64,"num_key_value_heads":64,"kv_lora_rank":1024,"qk_nope_head_dim":192},"16":{"num_attention_heads":64,"num_key_value_heads":64,"kv_lora_rank":1024,"qk_nope_head_dim":192},"18":{"num_attention_heads":64,"num_key_value_heads":64,"kv_lora_rank":1024,"qk_nope_head_dim":192},"19":{"num_attention_heads":64,"num_key_value_heads":64,"kv_lora_rank":1024,"qk_nope_head_dim":192},"20":{"num_attention_heads":64,"num_key_value_heads":64,"kv_lora_rank":1024,"qk_nope_head_dim":192},"22":{"num_attention_heads":64,"num_key_value_heads":64,"kv_lora_rank":1024,"qk_nope_head_dim":192},"23":{"num_attention_heads":64,"num_key_value_heads":64,"kv_lora_rank":1024,"qk_nope_head_dim":192},"24":{"num_attention_heads":64,"num_key_value_heads":64,"kv_lora_rank":1024,"qk_nope_head_dim":192},"26":{"num_attention_heads":64,"num_key_value_heads":64,"kv_lora_rank":1024,"qk_nope_head_dim":192},"27":{"num_attention_heads":64,"num_key_value_heads":64,"kv_lora_rank":1024,"qk_nope_head_dim":192},"28":{"num_attention_heads":64,"num_key_value_heads":64,"kv_lora_rank":1024,"qk_nope_head_dim":192},"30":{"num_attention_heads":64,"num_key_value_heads":64,"kv_lora_rank":1024,"qk_nope_head_dim":192},"31":{"num_attention_heads":64,"num_key_value_heads":64,"kv_lora_rank":1024,"qk_nope_head_dim":192},"32":{"num_attention_heads":64,"num_key_value_heads":64,"kv_lora_rank":1024,"qk_nope_head_dim":192},"34":{"num_attention_heads":64,"num_key_value_heads":64,"kv_lora_rank":1024,"qk_nope_head_dim":192},"35":{"num_attention_heads":64,"num_key_value_heads":64,"kv_lora_rank":1024,"qk_nope_head_dim":192},"36":{"num_attention_heads":64,"num_key_value_heads":64,"kv_lora_rank":1024,"qk_nope_head_dim":192},"38":{"num_attention_heads":64,"num_key_value_heads":64,"kv_lora_rank":1024,"qk_nope_head_dim":192},"39":{"num_attention_heads":64,"num_key_value_heads":64,"kv_lora_rank":1024,"qk_nope_head_dim":192},"40":{"num_attention_heads":64,"num_key_value_heads":64,"kv_lora_rank":1024,"qk_nope_head_dim":192},"42":{"num_attention_heads":64,"num_key_value_heads":64,"kv_lora_rank":1024,"qk_nope_head_dim":192},"43":{"num_attention_heads":64,"num_key_value_heads":64,"kv_lora_rank":1024,"qk_nope_head_dim":192},"44":{"num_attention_heads":64,"num_key_value_heads":64,"kv_lora_rank":1024,"qk_nope_head_dim":192}}
pyramid_num_routed null
q_lora_rank 1024
qk_nope_head_dim 128
qk_rope_head_dim 64
rms_norm_eps 1e-05
rope_parameters {"indexed_attention":{"rope_type":"default","rope_theta":80000000.0,"partial_rotary_factor":0.25},"sliding_attention":{"rope_type":"default","rope_theta":50000.0,"partial_rotary_factor":0.25}}
rope_scaling null
rope_theta null
routed_scaling_factor 1.0
router_scale null
shared_experts_intermediate_size 1536
sliding_window 512
sliding_window_size null
swa_qk_rope_head_dim null
swa_rope_theta null
tie_word_embeddings false
topk_group 1
use_bias null
use_dsa null
use_sliding_window null
v_head_dim 128
vocab_size 152064
whisper_adapter_in_dim null
whisper_adapter_out_dim null
whisper_config null
)"},
{"dots3_note_vision_encoder", R"(adapter_in_dim 1536
adapter_merge_size 2
adapter_out_dim 5120
adapter_output_size null
attention_bias false
attention_chunk_size null
attention_dropout 0.0
capacity_factor null
embed_dim null
first_k_dense_replace null
hidden_act "silu"
hidden_size 1536
initializer_range 0.02
intermediate_size 4224
is_causal null
layer_types null
mlp_bias false
mlp_layer_types ["dense","dense","dense","dense","dense","dense","dense","dense","dense","dense","dense","dense","dense","dense","dense","dense","dense","dense","dense","dense","dense","dense","dense","dense","dense","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse"]
moe_intermediate_size 2112
moe_layer_freq null
moe_shared_expert_intermediate_size null
num_attention_heads 24
num_channels 3
num_experts_per_tok 2
num_heads null
num_hidden_layers 42
num_local_experts 64
patch_size 14
per_layer_config {"25":{"num_local_experts":4},"26":{"num_local_experts":8},"27":{"num_local_experts":12},"28":{"num_local_experts":16},"29":{"num_local_experts":20},"30":{"num_local_experts":24},"31":{"num_local_experts":28},"32":{"num_local_experts":32},"33":{"num_local_experts":36},"34":{"num_local_experts":40},"35":{"num_local_experts":44},"36":{"num_local_experts":48},"37":{"num_local_experts":52},"38":{"num_local_experts":56},"39":{"num_local_experts":60}}
pyramid_num_routed null
rms_norm_eps 1e-05
rope_parameters {"rope_theta":10000.0,"rope_type":"axial"}
rope_scaling null
rope_theta null
router_scale null
router_scaling_factor 1.0
sliding_window null
sliding_window_size null
spatial_merge_size 2
swa_qk_rope_head_dim null
swa_rope_theta null
use_bias null
use_dsa null
use_sliding_window null
whisper_adapter_in_dim null
whisper_adapter_out_dim null
whisper_config null
)"},
{"efficientnet", R"(attention_chunk_size null
batch_norm_eps 0.001
batch_norm_momentum 0.99
depth_coefficient 3.1
depth_divisor 8
depthwise_padding []
drop_connect_rate 0.2
dropout_rate 0.5
expand_ratios [1,6,6,6,6,6,6]
hidden_act "swish"
hidden_dim 2560
!image_size
in_channels [32,16,24,40,80,112,192]
initializer_range 0.02
kernel_sizes [3,3,5,3,5,5,3]
layer_types null
num_block_repeats [1,2,2,3,3,4,1]
num_channels 3
num_hidden_layers 64
out_channels [16,24,40,80,112,192,320]
pooling_type "mean"
sliding_window null
squeeze_expansion_ratio 0.25
strides [1,2,2,2,1,2,1]
width_coefficient 2.0
)"},
{"electra", R"(add_cross_attention false
attention_chunk_size null
attention_probs_dropout_prob 0.1
classifier_dropout null
embedding_size 128
hidden_act "gelu"
hidden_dropout_prob 0.1
hidden_size 256
!initializer_range
intermediate_size 1024
is_decoder false
layer_norm_eps 1e-12
layer_types null
max_position_embeddings 512
num_attention_heads 4
num_hidden_layers 12
pad_token_id 0
sliding_window null
summary_activation "gelu"
summary_last_dropout 0.1
summary_type "first"
summary_use_proj true
tie_word_embeddings true
type_vocab_size 2
vocab_size 30522
)"},
{"emu3", R"(attention_chunk_size null
!image_token_id
layer_types null
sliding_window null
tie_word_embeddings false
vocabulary_map null
)"},
{"emu3_text_model", R"(attention_chunk_size null
attention_dropout 0.1
hidden_act "silu"
hidden_size 4096
!initializer_range
intermediate_size 14336
layer_types null
max_position_embeddings 9216
num_attention_heads 32
num_hidden_layers 32
num_key_value_heads 8
pad_token_id 151643
rms_norm_eps 1e-05
rope_parameters {"rope_theta":1000000.0,"rope_type":"default"}
sliding_window null
tie_word_embeddings false
vocab_size 184622
)"},
{"emu3_vqgan", R"(attention_chunk_size null
attention_dropout 0.0
attn_resolutions [3]
base_channels 256
channel_multiplier [1,2,2,4]
codebook_size 32768
double_latent false
embed_dim 4
hidden_size 1024
in_channels 3
latent_channels 4
layer_types null
num_attention_heads 1
num_res_blocks 2
out_channels 3
sliding_window null
temporal_downsample_factor 4
)"},
{"encoder-decoder", R"(attention_chunk_size null
decoder_start_token_id null
layer_types null
pad_token_id null
sliding_window null
)"},
{"ernie", R"(add_cross_attention false
attention_chunk_size null
attention_probs_dropout_prob 0.1
classifier_dropout null
hidden_act "gelu"
hidden_dropout_prob 0.1
hidden_size 768
!initializer_range
intermediate_size 3072
is_decoder false
layer_norm_eps 1e-12
layer_types null
max_position_embeddings 512
num_attention_heads 12
num_hidden_layers 12
pad_token_id 0
sliding_window null
task_type_vocab_size 3
tie_word_embeddings true
type_vocab_size 2
use_task_id false
vocab_size 30522
)"},
{"ernie4_5", R"(attention_chunk_size null
head_dim 128
hidden_act "silu"
hidden_size 1024
!initializer_range
intermediate_size 3072
layer_types null
max_position_embeddings 131072
num_attention_heads 16
num_hidden_layers 18
num_key_value_heads 2
pad_token_id 0
rms_norm_eps 1e-05
rope_parameters {"rope_theta":500000.0,"rope_type":"default"}
sliding_window null
tie_word_embeddings true
use_bias false
vocab_size 103424
)"},
{"ernie4_5_moe", R"(=num_experts moe_num_experts
=num_experts_per_tok moe_k
attention_chunk_size null
hidden_act "silu"
hidden_size 2560
initializer_range 0.02
intermediate_size 12288
layer_types null
max_position_embeddings 131072
moe_intermediate_size 1536
moe_k 6
moe_layer_end_index 27
moe_layer_interval 1
moe_layer_start_index 1
moe_norm_min 1e-12
moe_num_experts 64
moe_num_shared_experts 2
num_attention_heads 20
num_hidden_layers 28
num_key_value_heads 4
output_router_logits false
pad_token_id 0
rms_norm_eps 1e-05
rope_parameters {"rope_theta":500000.0,"rope_type":"default"}
router_aux_loss_coef 0.001
sliding_window null
tie_word_embeddings true
use_bias false
vocab_size 103424
)"},
{"ernie4_5_vl_moe", R"(attention_chunk_size null
!image_end_token_id
!image_start_token_id
image_token_id 100295
layer_types null
sliding_window null
tie_word_embeddings true
!video_end_token_id
!video_start_token_id
video_token_id 103367
)"},
{"ernie4_5_vl_moe_text", R"(=num_experts moe_num_experts
=num_experts_per_tok moe_k
attention_chunk_size null
hidden_act "silu"
hidden_size 2560
initializer_range 0.02
intermediate_size 12288
layer_types null
max_position_embeddings 131072
mlp_layer_types ["dense","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse"]
moe_intermediate_size [1536,512]
moe_k 6
moe_norm_min 1e-12
moe_num_experts 64
moe_num_shared_experts 2
num_attention_heads 20
num_hidden_layers 28
num_key_value_heads 4
!output_router_logits
pad_token_id null
rms_norm_eps 1e-05
rope_parameters {"rope_theta":500000.0,"rope_type":"default"}
!router_aux_loss_coef
sliding_window null
tie_word_embeddings true
use_bias false
vocab_size 103424
)"},
{"ernie4_5_vl_moe_vision", R"(=num_attention_heads num_heads
=num_hidden_layers depth
attention_chunk_size null
depth 32
hidden_act "quick_gelu"
hidden_size 1280
in_channels 3
initializer_range 0.02
intermediate_size 5120
layer_types null
num_heads 16
patch_size 14
rms_norm_eps 1e-06
rope_parameters {"rope_theta":10000.0,"rope_type":"axial"}
sliding_window null
spatial_merge_size 2
!temporal_merge_size
)"},
{"esm", R"(add_cross_attention false
attention_chunk_size null
attention_probs_dropout_prob 0.1
emb_layer_norm_before null
hidden_dropout_prob 0.1
hidden_size 768
!initializer_range
intermediate_size 3072
is_decoder false
is_folding_model false
layer_norm_eps 1e-12
layer_types null
mask_token_id null
max_position_embeddings 1026
num_attention_heads 12
num_hidden_layers 12
pad_token_id null
position_embedding_type "absolute"
rope_theta 10000.0
sliding_window null
tie_word_embeddings true
token_dropout false
vocab_list null
vocab_size null
)"},
{"esmc", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
classifier_dropout 0.1
head_dim 64
hidden_act "silu"
hidden_size 2560
!initializer_range
intermediate_size 6912
layer_types null
!mask_token_id
max_position_embeddings 2048
mlp_bias false
num_attention_heads 40
num_hidden_layers 80
num_key_value_heads 40
pad_token_id 1
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
sliding_window null
tie_word_embeddings false
vocab_size 64
)"},
{"eurobert", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
classifier_pooling "late"
head_dim 64
hidden_act "silu"
hidden_size 768
!initializer_range
intermediate_size 3072
layer_types null
!mask_token_id
max_position_embeddings 8192
mlp_bias false
num_attention_heads 12
num_hidden_layers 12
num_key_value_heads 12
pad_token_id 128001
!pretraining_tp
rms_norm_eps 1e-05
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
sliding_window null
tie_word_embeddings false
vocab_size 128256
)"},
{"evolla", R"(add_cross_attention false
aligner_attention_probs_dropout_prob 0.1
aligner_enable_bias true
aligner_ffn_mult 4
aligner_num_add_layers 8
attention_bias false
attention_chunk_size null
attention_dropout 0.0
hidden_act "silu"
hidden_size 4096
initializer_range 0.02
intermediate_size 14336
is_decoder false
layer_types null
max_position_embeddings 8192
mlp_bias false
num_attention_heads 32
num_hidden_layers 32
num_key_value_heads 8
pad_token_id null
resampler_depth 6
resampler_dim_head 64
resampler_ff_mult 4
resampler_heads 8
resampler_num_latents 64
rms_norm_eps 1e-05
rope_parameters {"rope_theta":500000.0,"rope_type":"default"}
sliding_window null
tie_word_embeddings false
vocab_size 128256
)"},
{"exaone", R"(=activation_function hidden_act
=layer_norm_epsilon rms_norm_eps
=num_layers num_hidden_layers
!attention_bias
attention_chunk_size null
attention_dropout 0.0
head_dim 128
!hidden_act
hidden_size 4096
!initializer_range
!intermediate_size
layer_types null
max_position_embeddings 4096
!mlp_bias
num_attention_heads 32
num_hidden_layers 32
num_key_value_heads 8
pad_token_id 0
rms_norm_eps 1e-05
rope_parameters {"rope_theta":500000.0,"rope_type":"default"}
sliding_window null
tie_word_embeddings false
vocab_size 102400
)"},
{"exaone4", R"(attention_chunk_size null
attention_dropout 0.0
hidden_act "silu"
hidden_size 4096
!initializer_range
intermediate_size 16384
layer_types ["sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention"]
max_position_embeddings 2048
num_attention_heads 32
num_hidden_layers 32
num_key_value_heads 32
pad_token_id null
rms_norm_eps 1e-05
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
sliding_window 4096
sliding_window_pattern 4
tie_word_embeddings false
vocab_size 102400
)"},
{"exaone4_5", R"(attention_chunk_size null
image_token_id 67
layer_types null
sliding_window null
tie_word_embeddings false
video_token_id 68
)"},
{"exaone4_5_vision", R"(=num_attention_heads num_heads
=num_hidden_layers depth
attention_chunk_size null
depth 32
fullatt_block_indexes [7,15,23,31]
hidden_act "silu"
hidden_size 3584
in_channels 3
!initializer_range
intermediate_size 3420
layer_types null
num_heads 16
num_key_value_heads 8
out_hidden_size 3584
patch_size 14
rope_parameters {"rope_theta":10000.0,"rope_type":"axial"}
sliding_window null
spatial_merge_size 2
temporal_patch_size 2
window_size 112
)"},
{"exaone_moe", R"(attention_chunk_size null
attention_dropout 0.0
first_k_dense_replace 1
hidden_act "silu"
hidden_size 4096
initializer_range 0.02
intermediate_size 16384
layer_types ["sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention"]
max_position_embeddings 2048
mlp_layer_types ["dense","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse"]
moe_intermediate_size 1024
n_group 1
norm_topk_prob true
num_attention_heads 32
num_experts 64
num_experts_per_tok 8
num_hidden_layers 32
num_key_value_heads 32
num_shared_experts 1
!output_router_logits
pad_token_id 0
rms_norm_eps 1e-05
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
routed_scaling_factor 2.5
sliding_window 4096
sliding_window_pattern 4
tie_word_embeddings false
topk_group 1
vocab_size 102400
)"},
{"falcon", R"(activation "gelu"
alibi false
attention_chunk_size null
attention_dropout 0.0
bias false
ffn_hidden_size 18176
hidden_dropout 0.0
hidden_size 4544
initializer_range 0.02
layer_norm_epsilon 1e-05
layer_types null
max_position_embeddings 2048
multi_query true
n_embed null
new_decoder_architecture false
num_attention_heads 71
num_hidden_layers 32
num_kv_heads 71
num_ln_in_parallel_attn null
pad_token_id null
parallel_attn true
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
sliding_window null
tie_word_embeddings true
vocab_size 65024
)"},
{"falcon_h1", R"(=layer_types layers_block_type
attention_bias false
attention_chunk_size null
attention_dropout 0.0
attention_in_multiplier 1.0
attention_out_multiplier 1.0
embedding_multiplier 1.0
hidden_act "silu"
hidden_size 4096
!initializer_range
intermediate_size 14336
key_multiplier 1.0
layer_types null
lm_head_multiplier 1.0
mamba_chunk_size 256
mamba_conv_bias true
mamba_d_conv 4
mamba_d_head 8
mamba_d_ssm 1024
mamba_d_state 256
mamba_expand 2
mamba_n_groups 1
mamba_n_heads 128
mamba_norm_before_gate true
mamba_proj_bias false
mamba_rms_norm false
max_position_embeddings 8192
mlp_bias false
mlp_multipliers [1.0,1.0]
num_attention_heads 32
num_hidden_layers 32
num_key_value_heads 8
num_logits_to_keep 1
pad_token_id 0
projectors_bias false
rms_norm_eps 1e-05
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
sliding_window null
ssm_in_multiplier 1.0
ssm_multipliers [1.0,1.0,1.0,1.0,1.0]
ssm_out_multiplier 1.0
tie_word_embeddings false
time_step_limit [0.0,Infinity]
vocab_size 128000
)"},
{"falcon_mamba", R"(attention_chunk_size null
conv_kernel 4
expand 2
hidden_act "silu"
hidden_size 768
!initializer_range
intermediate_size 1536
layer_norm_epsilon 1e-05
layer_types null
mixer_rms_eps 1e-06
num_hidden_layers 32
pad_token_id 0
rescale_prenorm_residual false
residual_in_fp32 true
sliding_window null
state_size 16
tie_word_embeddings true
time_step_floor 0.0001
time_step_init_scheme "random"
time_step_max 0.1
time_step_min 0.001
time_step_rank 48
time_step_scale 1.0
use_associative_scan true
use_bias false
use_conv_bias true
use_falcon_mambapy null
use_mambapy false
vocab_size 50280
)"},
{"fast_vlm", R"(=image_token_id image_token_index
attention_chunk_size null
!image_seq_length
image_token_index 151646
layer_types null
multimodal_projector_bias true
projector_hidden_act "gelu"
sliding_window null
tie_word_embeddings false
vision_feature_layer -1
vision_feature_select_strategy "full"
)"},
{"flaubert", R"(=bos_index bos_token_id
=eos_index eos_token_id
=hidden_size emb_dim
=n_words vocab_size
=num_attention_heads n_heads
=num_hidden_layers n_layers
=pad_index pad_token_id
asm false
attention_chunk_size null
attention_dropout 0.1
causal false
dropout 0.1
emb_dim 2048
embed_init_std 0.02209708691207961
end_n_top 5
gelu_activation true
!init_std
is_encoder true
lang_id 0
layer_norm_eps 1e-12
layer_types null
layerdrop 0.0
!mask_index
mask_token_id 0
max_position_embeddings 512
n_heads 16
n_langs 1
n_layers 12
pad_token_id 2
pre_norm false
sinusoidal_embeddings false
sliding_window null
start_n_top 5
summary_activation null
summary_first_dropout 0.1
summary_proj_to_labels true
summary_type "first"
summary_use_proj true
tie_word_embeddings true
!unk_index
use_lang_emb true
vocab_size 30145
)"},
{"flex_olmo", R"(=num_local_experts num_experts
attention_bias false
attention_chunk_size null
attention_dropout 0.0
hidden_act "silu"
hidden_size 4096
initializer_range 0.02
intermediate_size 11008
layer_types null
max_position_embeddings 4096
norm_topk_prob false
num_attention_heads 32
num_experts 7
num_experts_per_tok 5
num_hidden_layers 32
num_key_value_heads 32
output_router_logits false
pad_token_id 100277
rms_norm_eps 1e-06
rope_parameters {"rope_theta":500000.0,"rope_type":"default"}
router_aux_loss_coef 0.01
sliding_window null
tie_word_embeddings false
vocab_size 100352
)"},
{"flint", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
decoder_sparse_step 1
head_dim 128
hidden_act "silu"
hidden_size 2048
initializer_range 0.02
intermediate_size 6144
layer_types ["full_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","full_attention"]
max_position_embeddings 262144
mlp_only_layers [0,1]
moe_intermediate_size 512
norm_topk_prob true
num_attention_heads 32
num_experts 256
num_experts_per_tok 6
num_hidden_layers 49
num_key_value_heads 4
output_router_logits false
pad_token_id null
rms_norm_eps 1e-06
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
router_aux_loss_coef 0.0005
shared_expert_intermediate_size 1024
sliding_window 513
tie_word_embeddings false
vocab_size 150144
)"},
{"florence2", R"(attention_chunk_size null
image_token_id 51289
layer_types null
sliding_window null
tie_word_embeddings true
)"},
{"florence_vision", R"(activation_function "gelu"
attention_chunk_size null
depths [1,1,9,1]
drop_path_rate 0.1
embed_dim [128,256,512,1024]
in_channels 3
!initializer_range
layer_types null
max_position_embeddings 50
!max_temporal_embeddings
mlp_ratio 4.0
num_groups [4,8,16,32]
num_heads [4,8,16,32]
patch_padding [3,1,1,1]
patch_prenorm [false,true,true,true]
patch_size [7,3,3,3]
patch_stride [4,2,2,2]
!projection_dim
qkv_bias true
sliding_window null
window_size 12
)"},
{"fnet", R"(attention_chunk_size null
hidden_act "gelu_new"
hidden_dropout_prob 0.1
hidden_size 768
!initializer_range
intermediate_size 3072
layer_norm_eps 1e-12
layer_types null
max_position_embeddings 512
num_hidden_layers 12
pad_token_id 3
sliding_window null
tie_word_embeddings true
tpu_short_seq_length 512
type_vocab_size 4
use_tpu_fourier_optimizations false
vocab_size 32000
)"},
{"focalnet", R"(attention_chunk_size null
depths [2,2,6,2]
drop_path_rate 0.1
embed_dim 96
encoder_stride 32
focal_levels [2,2,2,2]
focal_windows [3,3,3,3]
hidden_act "gelu"
hidden_dropout_prob 0.0
hidden_sizes [192,384,768,768]
image_size 224
!initializer_range
layer_norm_eps 1e-05
layer_types null
layerscale_value 0.0001
mlp_ratio 4.0
normalize_modulator false
num_channels 3
out_features ["stage4"]
out_indices [4]
patch_size 4
sliding_window null
!stage_names
use_conv_embed false
use_layerscale false
use_post_layernorm false
use_post_layernorm_in_modulation false
)"},
{"fsmt", R"(=hidden_size d_model
=num_attention_heads encoder_attention_heads
=num_hidden_layers encoder_layers
=vocab_size tgt_vocab_size
activation_dropout 0.0
activation_function "relu"
attention_chunk_size null
attention_dropout 0.0
d_model 1024
decoder null
decoder_attention_heads 16
decoder_ffn_dim 4096
decoder_layerdrop 0.0
decoder_layers 12
!decoder_start_token_id
dropout 0.1
!early_stopping
encoder_attention_heads 16
encoder_ffn_dim 4096
encoder_layerdrop 0.0
encoder_layers 12
!forced_eos_token_id
!init_std
!langs
layer_types null
!length_penalty
!max_length
max_position_embeddings 1024
!num_beams
pad_token_id 1
scale_embedding true
sliding_window null
src_vocab_size 42024
tgt_vocab_size 42024
tie_word_embeddings false
)"},
{"funnel", R"(=hidden_size d_model
=num_attention_heads n_head
activation_dropout 0.0
attention_chunk_size null
attention_dropout 0.1
attention_type "relative_shift"
block_repeats [1,1,1]
block_sizes [4,4,4]
d_head 64
d_inner 3072
d_model 768
hidden_act "gelu_new"
hidden_dropout 0.1
initializer_range 0.1
initializer_std null
layer_norm_eps 1e-09
layer_types null
n_head 12
num_decoder_layers 2
pad_token_id null
pool_q_only true
pooling_type "mean"
separate_cls true
sliding_window null
tie_word_embeddings true
truncate_seq true
vocab_size 30522
)"},
{"fuyu", R"(attention_chunk_size null
!image_size
image_token_id 71011
!initializer_range
layer_types null
num_channels 3
patch_size 30
sliding_window null
tie_word_embeddings false
torch_dtype null
)"},
{"gemma", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
head_dim 256
hidden_act "gelu_pytorch_tanh"
hidden_size 3072
!initializer_range
intermediate_size 24576
layer_types null
max_position_embeddings 8192
num_attention_heads 16
num_hidden_layers 28
num_key_value_heads 16
pad_token_id 0
rms_norm_eps 1e-06
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
sliding_window null
tie_word_embeddings true
use_bidirectional_attention null
vocab_size 256000
)"},
{"gemma2", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
attn_logit_softcapping 50.0
final_logit_softcapping 30.0
head_dim 256
hidden_activation "gelu_pytorch_tanh"
hidden_size 2304
!initializer_range
intermediate_size 9216
layer_types ["sliding_attention","full_attention","sliding_attention","full_attention","sliding_attention","full_attention","sliding_attention","full_attention","sliding_attention","full_attention","sliding_attention","full_attention","sliding_attention","full_attention","sliding_attention","full_attention","sliding_attention","full_attention","sliding_attention","full_attention","sliding_attention","full_attention","sliding_attention","full_attention","sliding_attention","full_attention"]
max_position_embeddings 8192
num_attention_heads 8
num_hidden_layers 26
num_key_value_heads 4
pad_token_id 0
query_pre_attn_scalar 256
rms_norm_eps 1e-06
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
sliding_window 4096
tie_word_embeddings true
use_bidirectional_attention null
vocab_size 256000
)"},
{"gemma3", R"(=boi_token_id boi_token_index
=eoi_token_id eoi_token_index
=image_token_id image_token_index
attention_chunk_size null
!boi_token_index
!eoi_token_index
image_token_index 262144
!initializer_range
layer_types null
mm_tokens_per_image 256
rope_local_base_freq null
rope_scaling null
rope_theta null
sliding_window null
sliding_window_pattern null
tie_word_embeddings true
)"},
{"gemma3_text", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
attn_logit_softcapping null
final_logit_softcapping null
head_dim 256
hidden_activation "gelu_pytorch_tanh"
hidden_size 2304
!initializer_range
intermediate_size 9216
layer_types ["sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention"]
max_position_embeddings 131072
num_attention_heads 8
num_hidden_layers 26
num_key_value_heads 4
pad_token_id 0
query_pre_attn_scalar 256
rms_norm_eps 1e-06
rope_local_base_freq null
rope_parameters {"sliding_attention":{"rope_type":"default","rope_theta":10000.0},"full_attention":{"rope_type":"default","rope_theta":1000000.0}}
rope_scaling null
rope_theta null
sliding_window 4096
sliding_window_pattern null
tie_word_embeddings true
use_bidirectional_attention false
vocab_size 262208
)"},
{"gemma3n", R"(attention_chunk_size null
audio_soft_tokens_per_image 188
audio_token_id 262273
!boa_token_id
!boi_token_id
!eoa_token_id
!eoi_token_id
image_token_id 262145
!initializer_range
layer_types null
num_labels null
rope_local_base_freq null
rope_scaling null
rope_theta null
sliding_window null
tie_word_embeddings true
vision_soft_tokens_per_image 256
)"},
{"gemma3n_audio", R"(attention_chunk_size null
conf_attention_chunk_size 12
conf_attention_context_left 13
conf_attention_context_right 0
conf_attention_logit_cap 50.0
conf_conv_kernel_size 5
conf_num_attention_heads 8
conf_num_hidden_layers 12
conf_reduction_factor 4
conf_residual_weight 0.5
gradient_clipping 10000000000.0
hidden_size 1536
input_feat_size 128
layer_types null
num_labels null
rms_norm_eps 1e-06
rope_local_base_freq null
rope_scaling null
rope_theta null
sliding_window null
sscp_conv_channel_size [128,32]
sscp_conv_group_norm_eps 0.001
sscp_conv_kernel_size [[3,3],[3,3]]
sscp_conv_stride_size [[2,2],[2,2]]
vocab_offset 262272
vocab_size 128
)"},
{"gemma3n_text", R"(activation_sparsity_pattern [0.95,0.95,0.95,0.95,0.95,0.95,0.95,0.95,0.95,0.95,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0]
altup_active_idx 0
altup_coef_clip 120.0
altup_correct_scale true
altup_num_inputs 4
attention_bias false
attention_chunk_size null
attention_dropout 0.0
final_logit_softcapping 30.0
head_dim 256
hidden_activation "gelu_pytorch_tanh"
hidden_size 2048
hidden_size_per_layer_input 256
!initializer_range
intermediate_size [16384,16384,16384,16384,16384,16384,16384,16384,16384,16384,16384,16384,16384,16384,16384,16384,16384,16384,16384,16384,16384,16384,16384,16384,16384,16384,16384,16384,16384,16384,16384,16384,16384,16384,16384]
laurel_rank 64
layer_types ["sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention"]
max_position_embeddings 32768
num_attention_heads 8
num_hidden_layers 35
num_key_value_heads 2
num_kv_shared_layers 15
num_labels null
pad_token_id 0
rms_norm_eps 1e-06
rope_local_base_freq null
rope_parameters {"sliding_attention":{"rope_type":"default","rope_theta":10000.0},"full_attention":{"rope_type":"default","rope_theta":1000000.0}}
rope_scaling null
rope_theta null
sliding_window 512
tie_word_embeddings true
vocab_size 262400
vocab_size_per_layer_input 262144
)"},
{"gemma3n_vision", R"(!architecture
attention_chunk_size null
!do_pooling
hidden_size 2048
!initializer_range
!label_names
layer_types null
!model_args
!num_classes
num_labels null
rms_norm_eps 1e-06
rope_local_base_freq null
rope_scaling null
rope_theta null
sliding_window null
vocab_offset 262144
vocab_size 128
)"},
{"gemma4", R"(attention_chunk_size null
audio_token_id 258881
!boa_token_id
!boi_token_id
!eoa_token_index
!eoi_token_id
global_head_dim null
image_token_id 258880
initializer_range 0.02
layer_types null
num_global_key_value_heads null
sliding_window null
tie_word_embeddings true
video_token_id 258884
)"},
{"gemma4_audio", R"(attention_chunk_size 12
attention_context_left 13
attention_context_right 0
attention_invalid_logits_value -1000000000.0
attention_logit_cap 50.0
conv_kernel_size 5
global_head_dim null
gradient_clipping 10000000000.0
hidden_act "silu"
hidden_size 1024
initializer_range 0.02
layer_types null
num_attention_heads 8
num_global_key_value_heads null
num_hidden_layers 12
output_proj_dims 1536
residual_weight 0.5
rms_norm_eps 1e-06
sliding_window null
subsampling_conv_channels [128,32]
use_clipped_linears true
)"},
{"gemma4_text", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
attention_k_eq_v false
enable_moe_block false
final_logit_softcapping null
global_head_dim null
head_dim 256
hidden_activation "gelu_pytorch_tanh"
hidden_size 2304
hidden_size_per_layer_input 256
initializer_range 0.02
intermediate_size 9216
layer_types ["sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention"]
max_position_embeddings 131072
moe_intermediate_size null
num_attention_heads 8
num_experts null
num_global_key_value_heads null
num_hidden_layers 30
num_key_value_heads 4
num_kv_shared_layers 0
pad_token_id 0
per_layer_config {"05":{"head_dim":512},"11":{"head_dim":512},"17":{"head_dim":512},"23":{"head_dim":512},"29":{"head_dim":512}}
rms_norm_eps 1e-06
rope_parameters {"sliding_attention":{"rope_type":"default","rope_theta":10000.0},"full_attention":{"rope_type":"proportional","partial_rotary_factor":0.25,"rope_theta":1000000.0}}
sliding_window 512
tie_word_embeddings true
top_k_experts null
use_bidirectional_attention null
use_double_wide_mlp false
vocab_size 262144
vocab_size_per_layer_input 262144
)"},
{"gemma4_unified", R"(attention_chunk_size null
audio_token_id 258881
!boa_token_id
!boi_token_id
!eoa_token_index
!eoi_token_id
global_head_dim null
image_token_id 258880
!initializer_range
layer_types null
num_global_key_value_heads null
sliding_window null
tie_word_embeddings true
video_token_id 258884
)"},
{"gemma4_unified_assistant", R"(attention_chunk_size null
backbone_hidden_size 3840
centroid_intermediate_top_k 32
layer_types null
num_centroids 2048
sliding_window null
tie_word_embeddings true
use_ordered_embeddings false
)"},
{"gemma4_unified_audio", R"(attention_chunk_size null
audio_embed_dim 640
global_head_dim null
!initializer_range
layer_types null
num_global_key_value_heads null
rms_norm_eps 1e-06
sliding_window null
)"},
{"gemma4_unified_text", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
attention_k_eq_v false
final_logit_softcapping null
global_head_dim null
head_dim 256
hidden_activation "gelu_pytorch_tanh"
hidden_size 2304
!initializer_range
intermediate_size 9216
layer_types ["sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention"]
max_position_embeddings 262144
num_attention_heads 8
num_global_key_value_heads null
num_hidden_layers 30
num_key_value_heads 4
num_kv_shared_layers 0
pad_token_id 0
per_layer_config {"05":{"head_dim":512},"11":{"head_dim":512},"17":{"head_dim":512},"23":{"head_dim":512},"29":{"head_dim":512}}
rms_norm_eps 1e-06
rope_parameters {"sliding_attention":{"rope_type":"default","rope_theta":10000.0},"full_attention":{"rope_type":"proportional","partial_rotary_factor":0.25,"rope_theta":1000000.0}}
sliding_window 1024
tie_word_embeddings true
use_bidirectional_attention "vision"
use_double_wide_mlp false
vocab_size 262144
)"},
{"gemma4_unified_vision", R"(attention_chunk_size null
global_head_dim null
!initializer_range
layer_types null
mm_embed_dim 3840
mm_posemb_size 1120
num_global_key_value_heads null
output_proj_dims 3840
patch_size 16
pooling_kernel_size 3
rms_norm_eps 1e-06
sliding_window null
)"},
{"gemma4_vision", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
global_head_dim null
head_dim 64
hidden_activation "gelu_pytorch_tanh"
hidden_size 768
initializer_range 0.02
intermediate_size 3072
layer_types null
max_position_embeddings 131072
num_attention_heads 12
num_global_key_value_heads null
num_hidden_layers 16
num_key_value_heads 12
patch_size 16
pooling_kernel_size 3
position_embedding_size 10240
rms_norm_eps 1e-06
rope_parameters {"rope_theta":100.0,"rope_type":"axial"}
sliding_window null
standardize false
use_clipped_linears false
)"},
{"git", R"(attention_chunk_size null
attention_probs_dropout_prob 0.1
hidden_act "gelu"
hidden_dropout_prob 0.1
hidden_size 768
initializer_range 0.02
intermediate_size 3072
layer_norm_eps 1e-12
layer_types null
max_position_embeddings 1024
num_attention_heads 12
num_hidden_layers 6
num_image_with_embedding null
pad_token_id 0
sliding_window null
tie_word_embeddings false
vocab_size 30522
)"},
{"git_vision_model", R"(attention_chunk_size null
attention_dropout 0.0
hidden_act "quick_gelu"
hidden_size 768
image_size 224
initializer_range 0.02
intermediate_size 3072
layer_norm_eps 1e-05
layer_types null
num_attention_heads 12
num_channels 3
num_hidden_layers 12
patch_size 16
sliding_window null
)"},
{"glm", R"(attention_bias true
attention_chunk_size null
attention_dropout 0.0
head_dim 128
hidden_act "silu"
hidden_size 4096
!ignore_keys_at_rope_validation
!initializer_range
intermediate_size 13696
layer_types null
max_position_embeddings 131072
num_attention_heads 32
num_hidden_layers 40
num_key_value_heads 2
pad_token_id 151329
rms_norm_eps 1.5625e-07
rope_parameters {"rope_theta":10000.0,"partial_rotary_factor":0.5,"rope_type":"default"}
sliding_window null
tie_word_embeddings false
vocab_size 151552
)"},
{"glm4", R"(attention_bias true
attention_chunk_size null
attention_dropout 0.0
head_dim 128
hidden_act "silu"
hidden_size 4096
!ignore_keys_at_rope_validation
!initializer_range
intermediate_size 13696
layer_types null
max_position_embeddings 131072
num_attention_heads 32
num_hidden_layers 40
num_key_value_heads 2
pad_token_id 151329
rms_norm_eps 1.5625e-07
rope_parameters {"rope_theta":10000.0,"partial_rotary_factor":0.5,"rope_type":"default"}
sliding_window null
tie_word_embeddings false
vocab_size 151552
)"},
{"glm46v", R"(attention_chunk_size null
!image_end_token_id
!image_start_token_id
image_token_id 151343
layer_types null
sliding_window null
tie_word_embeddings false
!video_end_token_id
!video_start_token_id
video_token_id 151344
)"},
{"glm4_moe", R"(=num_local_experts n_routed_experts
=num_mtp_layers num_nextn_predict_layers
attention_bias false
attention_chunk_size null
attention_dropout 0.0
first_k_dense_replace 1
hidden_act "silu"
hidden_size 4096
!ignore_keys_at_rope_validation
initializer_range 0.02
intermediate_size 10944
layer_types null
max_position_embeddings 131072
moe_intermediate_size 1408
n_group 1
n_routed_experts 128
n_shared_experts 1
norm_topk_prob true
num_attention_heads 96
num_experts_per_tok 8
num_hidden_layers 46
num_key_value_heads 8
num_nextn_predict_layers 1
!output_router_logits
pad_token_id null
rms_norm_eps 1e-05
rope_parameters {"rope_theta":10000.0,"partial_rotary_factor":0.5,"rope_type":"default"}
routed_scaling_factor 1.0
sliding_window null
tie_word_embeddings false
topk_group 1
use_qk_norm false
vocab_size 151552
)"},
{"glm4_moe_lite", R"(=head_dim qk_rope_head_dim
=num_local_experts n_routed_experts
attention_bias false
attention_chunk_size null
attention_dropout 0.0
hidden_act "silu"
hidden_size 2048
initializer_range 0.02
intermediate_size 10240
kv_lora_rank 512
layer_types null
max_position_embeddings 202752
mlp_layer_types ["dense","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse"]
moe_intermediate_size 1536
n_group 1
n_routed_experts 64
n_shared_experts 1
norm_topk_prob true
num_attention_heads 20
num_experts_per_tok 4
num_hidden_layers 47
num_key_value_heads 20
!output_router_logits
pad_token_id null
!pretraining_tp
q_lora_rank 768
!qk_head_dim
qk_nope_head_dim 192
qk_rope_head_dim 64
rms_norm_eps 1e-05
rope_interleave true
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
routed_scaling_factor 1.8
sliding_window null
tie_word_embeddings false
topk_group 1
v_head_dim 256
vocab_size 154880
)"},
{"glm4v", R"(attention_chunk_size null
!image_end_token_id
!image_start_token_id
image_token_id 151343
layer_types null
sliding_window null
tie_word_embeddings false
!video_end_token_id
!video_start_token_id
video_token_id 151344
)"},
{"glm4v_moe", R"(attention_chunk_size null
!image_end_token_id
!image_start_token_id
image_token_id 151363
layer_types null
sliding_window null
tie_word_embeddings false
!video_end_token_id
!video_start_token_id
video_token_id 151364
)"},
{"glm4v_moe_text", R"(=num_local_experts n_routed_experts
attention_bias true
attention_chunk_size null
attention_dropout 0.0
first_k_dense_replace 1
hidden_act "silu"
hidden_size 4096
!ignore_keys_at_rope_validation
initializer_range 0.02
intermediate_size 10944
layer_types null
max_position_embeddings 65536
moe_intermediate_size 1408
n_group 1
n_routed_experts 128
n_shared_experts 1
norm_topk_prob true
num_attention_heads 96
num_experts_per_tok 8
num_hidden_layers 46
num_key_value_heads 8
!output_router_logits
pad_token_id null
rms_norm_eps 1e-05
rope_parameters {"rope_theta":10000.0,"partial_rotary_factor":0.5,"rope_type":"default"}
routed_scaling_factor 1.0
!router_aux_loss_coef
sliding_window null
tie_word_embeddings false
topk_group 1
vocab_size 151424
)"},
{"glm4v_moe_vision", R"(=num_attention_heads num_heads
=num_hidden_layers depth
attention_bias false
attention_chunk_size null
attention_dropout 0.0
depth 24
hidden_act "silu"
hidden_size 1536
image_size 336
in_channels 3
initializer_range 0.02
intermediate_size 13696
layer_types null
num_heads 12
out_hidden_size 4096
patch_size 14
rms_norm_eps 1e-05
rope_parameters {"rope_theta":10000.0,"rope_type":"axial"}
sliding_window null
spatial_merge_size 2
temporal_patch_size 2
)"},
{"glm4v_text", R"(attention_chunk_size null
attention_dropout 0.0
hidden_act "silu"
hidden_size 4096
!initializer_range
intermediate_size 13696
layer_types null
max_position_embeddings 32768
num_attention_heads 32
num_hidden_layers 40
num_key_value_heads 2
pad_token_id null
rms_norm_eps 1e-05
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
sliding_window null
vocab_size 151552
)"},
{"glm4v_vision", R"(=num_attention_heads num_heads
=num_hidden_layers depth
attention_bias false
attention_chunk_size null
attention_dropout 0.0
depth 24
hidden_act "silu"
hidden_size 1536
image_size 336
in_channels 3
!initializer_range
intermediate_size 13696
layer_types null
num_heads 12
out_hidden_size 4096
patch_size 14
rms_norm_eps 1e-05
rope_parameters {"rope_theta":10000.0,"rope_type":"axial"}
sliding_window null
spatial_merge_size 2
temporal_patch_size 2
)"},
{"glm5_next", R"(attention_chunk_size null
head_dim null
!image_end_token_id
!image_start_token_id
image_token_id 154854
index_skip_topk_offset null
index_topk_freq null
index_topk_pattern null
layer_types null
linear_attn_config null
sliding_window null
tie_word_embeddings false
video_end_token_id 154833
video_start_token_id 154832
!video_token_id
)"},
{"glm5_next_text", R"(=num_local_experts n_routed_experts
attention_bias false
attention_chunk_size null
attention_dropout 0.0
hc_eps 1e-06
hc_mult 4
hc_sinkhorn_iters 20
head_dim 0
hidden_act "silu"
hidden_size 4096
index_head_dim 128
index_kpool 16
index_kpool_always_select_tail true
index_n_heads 32
index_skip_topk_offset null
index_topk 2048
index_topk_freq null
index_topk_pattern null
indexer_types ["full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full"]
initializer_range 0.02
intermediate_size 12288
kv_lora_rank 512
layer_types ["linear_attention","linear_attention","linear_attention","indexed_attention","linear_attention","linear_attention","linear_attention","indexed_attention","linear_attention","linear_attention","linear_attention","indexed_attention","linear_attention","linear_attention","linear_attention","indexed_attention","linear_attention","linear_attention","linear_attention","indexed_attention","linear_attention","linear_attention","linear_attention","indexed_attention","linear_attention","linear_attention","linear_attention","indexed_attention","linear_attention","linear_attention","linear_attention","indexed_attention","linear_attention","linear_attention","linear_attention","indexed_attention","linear_attention","linear_attention","linear_attention","indexed_attention","linear_attention","linear_attention","linear_attention","indexed_attention","linear_attention"]
linear_attn_config null
linear_conv_kernel_dim 4
linear_head_dim 128
linear_lower_bound -5.0
linear_num_heads 64
max_position_embeddings 1048576
mlp_layer_types ["dense","dense","dense","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse"]
moe_intermediate_size 2048
n_group 1
n_routed_experts 288
n_shared_experts 1
norm_topk_prob true
num_attention_heads 64
num_experts_per_tok 8
num_hidden_layers 45
num_key_value_heads 64
!output_router_logits
pad_token_id 154820
q_lora_rank 1536
!qk_head_dim
qk_nope_head_dim 256
qk_rope_head_dim 0
rms_norm_eps 1e-05
routed_scaling_factor 2.5
!router_aux_loss_coef
sliding_window null
swiglu_limit 10.0
tie_word_embeddings false
topk_group 1
v_head_dim 256
vocab_size 154880
)"},
{"glm5_next_vision", R"(=num_attention_heads num_heads
=num_hidden_layers depth
attention_bias true
attention_chunk_size null
attention_dropout 0.0
depth 24
head_dim null
hidden_act "silu"
hidden_size 1024
!image_size
in_channels 3
index_skip_topk_offset null
index_topk_freq null
index_topk_pattern null
initializer_range 0.02
intermediate_size 4096
layer_types null
linear_attn_config null
num_heads 16
out_hidden_size 1536
patch_size 14
projection_intermediate_size 10240
rms_norm_eps 1e-05
rope_parameters {"rope_theta":10000.0,"rope_type":"axial"}
sliding_window null
spatial_merge_size 2
swiglu_limit 10.0
temporal_patch_size 2
)"},
{"glm_moe_dsa", R"(=num_local_experts n_routed_experts
attention_bias false
attention_chunk_size null
attention_dropout 0.0
first_k_dense_replace 3
head_dim 64
hidden_act "silu"
hidden_size 6144
index_head_dim 128
index_n_heads 32
index_skip_topk_offset null
index_topk 2048
index_topk_freq null
index_topk_pattern null
indexer_types ["full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full"]
initializer_range 0.02
intermediate_size 12288
kv_lora_rank 512
layer_types ["indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention"]
max_position_embeddings 202752
!mlp_bias
mlp_layer_types ["dense","dense","dense","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse"]
moe_intermediate_size 2048
n_group 1
n_routed_experts 256
n_shared_experts 1
norm_topk_prob true
num_attention_heads 64
num_experts null
num_experts_per_tok 8
num_hidden_layers 78
num_key_value_heads 64
!output_router_logits
pad_token_id null
q_lora_rank 2048
!qk_head_dim
qk_nope_head_dim 192
qk_rope_head_dim 64
rms_norm_eps 1e-05
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
routed_scaling_factor 2.5
sliding_window null
tie_word_embeddings false
topk_group 1
v_head_dim 256
vocab_size 154880
)"},
{"glm_ocr", R"(attention_chunk_size null
!image_end_token_id
!image_start_token_id
image_token_id 59280
layer_types null
sliding_window null
tie_word_embeddings false
!video_end_token_id
!video_start_token_id
video_token_id 59281
)"},
{"glm_ocr_text", R"(attention_chunk_size null
attention_dropout 0.0
hidden_act "silu"
hidden_size 1024
!initializer_range
intermediate_size 4096
layer_types null
max_position_embeddings 131072
num_attention_heads 16
num_hidden_layers 16
num_key_value_heads 8
pad_token_id null
rms_norm_eps 1e-05
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
sliding_window null
vocab_size 59392
)"},
{"glm_ocr_vision", R"(=num_attention_heads num_heads
=num_hidden_layers depth
attention_bias true
attention_chunk_size null
attention_dropout 0.0
depth 24
hidden_act "silu"
hidden_size 1024
!image_size
in_channels 3
!initializer_range
intermediate_size 4096
layer_types null
num_heads 16
out_hidden_size 1536
patch_size 14
rms_norm_eps 1e-05
rope_parameters {"rope_theta":10000.0,"rope_type":"axial"}
sliding_window null
spatial_merge_size 2
temporal_patch_size 2
)"},
{"glmasr", R"(attention_chunk_size null
audio_token_id 59260
layer_types null
projector_hidden_act "gelu"
sliding_window null
tie_word_embeddings true
)"},
{"glmga", R"(attention_chunk_size null
!image_end_token_id
!image_start_token_id
!image_token_id
layer_types null
sliding_window null
tie_word_embeddings false
!video_end_token_id
!video_start_token_id
!video_token_id
)"},
{"got_ocr2", R"(=image_token_id image_token_index
attention_chunk_size null
!image_seq_length
image_token_index 151859
layer_types null
sliding_window null
tie_word_embeddings true
)"},
{"got_ocr2_vision", R"(attention_chunk_size null
attention_dropout 0.0
global_attn_indexes [2,5,8,11]
hidden_act "gelu"
hidden_size 768
image_size 1024
!initializer_range
layer_norm_eps 1e-06
layer_types null
mlp_dim 3072
num_attention_heads 12
num_channels 3
num_hidden_layers 12
output_channels 256
patch_size 16
qkv_bias true
sliding_window null
use_abs_pos true
use_rel_pos true
window_size 14
)"},
{"gpt-sw3", R"(=hidden_size n_embd
=max_position_embeddings n_positions
=num_attention_heads n_head
=num_hidden_layers n_layer
activation_function "gelu_new"
add_cross_attention false
attention_chunk_size null
attn_pdrop 0.1
embd_pdrop 0.1
initializer_range 0.02
layer_norm_epsilon 1e-05
layer_types null
n_embd 768
n_head 12
n_inner null
n_layer 12
n_positions 1024
pad_token_id null
reorder_and_upcast_attn false
resid_pdrop 0.1
scale_attn_by_inverse_layer_idx false
scale_attn_weights true
sliding_window null
summary_activation null
summary_first_dropout 0.1
summary_proj_to_labels true
summary_type "cls_index"
summary_use_proj true
tie_word_embeddings true
vocab_size 50257
)"},
{"gpt2", R"(=hidden_size n_embd
=max_position_embeddings n_positions
=num_attention_heads n_head
=num_hidden_layers n_layer
activation_function "gelu_new"
add_cross_attention false
attention_chunk_size null
attn_pdrop 0.1
embd_pdrop 0.1
initializer_range 0.02
layer_norm_epsilon 1e-05
layer_types null
n_embd 768
n_head 12
n_inner null
n_layer 12
n_positions 1024
pad_token_id null
reorder_and_upcast_attn false
resid_pdrop 0.1
scale_attn_by_inverse_layer_idx false
scale_attn_weights true
sliding_window null
summary_activation null
summary_first_dropout 0.1
summary_proj_to_labels true
summary_type "cls_index"
summary_use_proj true
tie_word_embeddings true
vocab_size 50257
)"},
{"gpt_bigcode", R"(=hidden_size n_embd
=max_position_embeddings n_positions
=num_attention_heads n_head
=num_hidden_layers n_layer
activation_function "gelu_pytorch_tanh"
add_cross_attention false
attention_chunk_size null
attention_softmax_in_fp32 true
attn_pdrop 0.1
embd_pdrop 0.1
initializer_range 0.02
layer_norm_epsilon 1e-05
layer_types null
multi_query true
n_embd 768
n_head 12
n_inner null
n_layer 12
n_positions 1024
!num_key_value_heads
pad_token_id null
resid_pdrop 0.1
scale_attention_softmax_in_fp32 true
scale_attn_weights true
sliding_window null
tie_word_embeddings true
vocab_size 50257
)"},
{"gpt_neo", R"(=num_attention_heads num_heads
=num_hidden_layers num_layers
activation_function "gelu_new"
attention_chunk_size null
attention_dropout 0.0
attention_layers ["global","local","global","local","global","local","global","local","global","local","global","local","global","local","global","local","global","local","global","local","global","local","global","local"]
attention_types [[["global","local"],12]]
classifier_dropout 0.1
embed_dropout 0.0
hidden_size 2048
!initializer_range
intermediate_size null
layer_norm_epsilon 1e-05
layer_types null
max_position_embeddings 2048
num_heads 16
num_layers 24
pad_token_id null
resid_dropout 0.0
sliding_window null
tie_word_embeddings true
vocab_size 50257
window_size 256
)"},
{"gpt_neox", R"(attention_bias true
attention_chunk_size null
attention_dropout 0.0
classifier_dropout 0.1
hidden_act "gelu"
hidden_dropout 0.0
hidden_size 6144
!initializer_range
intermediate_size 24576
is_decoder false
layer_norm_eps 1e-05
layer_types null
max_position_embeddings 2048
num_attention_heads 64
num_hidden_layers 44
pad_token_id null
rope_parameters {"rope_theta":10000.0,"partial_rotary_factor":0.25,"rope_type":"default"}
rope_scaling null
rotary_emb_base null
rotary_pct null
sliding_window null
tie_word_embeddings false
use_parallel_residual true
vocab_size 50432
)"},
{"gpt_neox_japanese", R"(attention_chunk_size null
attention_dropout 0.1
hidden_act "gelu"
hidden_dropout 0.0
hidden_size 2560
!initializer_range
intermediate_multiple_size 4
is_decoder false
layer_norm_eps 1e-05
layer_types null
max_position_embeddings 2048
num_attention_heads 32
num_hidden_layers 32
pad_token_id null
rope_parameters {"rope_theta":10000.0,"partial_rotary_factor":1.0,"rope_type":"default"}
rope_scaling null
rotary_emb_base null
rotary_pct null
sliding_window null
tie_word_embeddings true
vocab_size 32000
)"},
{"gpt_oss", R"(=num_experts num_local_experts
attention_bias true
attention_chunk_size null
attention_dropout 0.0
head_dim 64
!hidden_act
hidden_size 2880
initializer_range 0.02
intermediate_size 2880
layer_types ["sliding_attention","full_attention","sliding_attention","full_attention","sliding_attention","full_attention","sliding_attention","full_attention","sliding_attention","full_attention","sliding_attention","full_attention","sliding_attention","full_attention","sliding_attention","full_attention","sliding_attention","full_attention","sliding_attention","full_attention","sliding_attention","full_attention","sliding_attention","full_attention","sliding_attention","full_attention","sliding_attention","full_attention","sliding_attention","full_attention","sliding_attention","full_attention","sliding_attention","full_attention","sliding_attention","full_attention"]
max_position_embeddings 131072
num_attention_heads 64
num_experts_per_tok 4
num_hidden_layers 36
num_key_value_heads 8
num_local_experts 128
output_router_logits false
pad_token_id null
rms_norm_eps 1e-05
rope_parameters {"rope_type":"yarn","factor":32.0,"beta_fast":32.0,"beta_slow":1.0,"truncate":false,"original_max_position_embeddings":4096,"rope_theta":150000.0}
router_aux_loss_coef 0.001
sliding_window 128
swiglu_alpha 1.702
swiglu_limit 7.0
tie_word_embeddings false
vocab_size 201088
)"},
{"gptj", R"(=hidden_size n_embd
=max_position_embeddings n_positions
=num_attention_heads n_head
=num_hidden_layers n_layer
activation_function "gelu_new"
attention_chunk_size null
attn_pdrop 0.0
embd_pdrop 0.0
!initializer_range
layer_norm_epsilon 1e-05
layer_types null
n_embd 4096
n_head 16
n_inner null
n_layer 28
n_positions 2048
pad_token_id null
resid_pdrop 0.0
rotary_dim 64
sliding_window null
tie_word_embeddings false
vocab_size 50400
)"},
{"granite", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
attention_multiplier 1.0
embedding_multiplier 1.0
hidden_act "silu"
hidden_size 4096
!initializer_range
intermediate_size 11008
layer_types null
logits_scaling 1.0
max_position_embeddings 2048
mlp_bias false
num_attention_heads 32
num_hidden_layers 32
num_key_value_heads 32
pad_token_id null
residual_multiplier 1.0
rms_norm_eps 1e-06
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
sliding_window null
tie_word_embeddings false
vocab_size 32000
)"},
{"granite4_vision", R"(=image_token_id image_token_index
attention_chunk_size null
deepstack_layer_map null
downsample_rate null
image_grid_pinpoints [[336,672],[672,336],[672,672],[1008,336],[336,1008]]
!image_seq_length
image_token_index 32000
layer_types null
projector_dropout 0.1
sliding_window null
spatial_target_layers [12,15,18,21]
spatial_vision_layer -1
tie_word_embeddings false
!vision_feature_layer
!vision_feature_select_strategy
)"},
{"granite4_vision_text", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
attention_multiplier 1.0
embedding_multiplier 1.0
hidden_act "silu"
hidden_size 4096
!initializer_range
intermediate_size 11008
layer_types null
!logits_scaling
max_position_embeddings 2048
mlp_bias false
num_attention_heads 32
num_hidden_layers 32
num_key_value_heads 32
pad_token_id null
residual_multiplier 1.0
rms_norm_eps 1e-06
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
sliding_window null
tie_word_embeddings false
vocab_size 32000
)"},
{"granite_docling", R"(attention_chunk_size null
density_router_hidden_size null
density_router_loss_weight 0.1
density_router_threshold 0.4
image_token_id 100337
layer_types null
pad_token_id 100256
sliding_window null
tie_word_embeddings true
)"},
{"granite_docling_text", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
attention_multiplier 0.015625
embedding_multiplier 12.0
hidden_act "silu"
hidden_size 1024
!initializer_range
intermediate_size 2048
layer_types null
!logits_scaling
max_position_embeddings 32768
mlp_bias false
num_attention_heads 16
num_hidden_layers 28
num_key_value_heads 4
pad_token_id 100256
residual_multiplier 0.263
rms_norm_eps 1e-05
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
sliding_window null
tie_word_embeddings true
vocab_size 133800
)"},
{"granite_docling_vision", R"(attention_chunk_size null
attention_dropout 0.0
deepstack_visual_indexes [3,7,10]
hidden_act "gelu_pytorch_tanh"
hidden_size 768
image_size 512
!initializer_range
intermediate_size 3072
layer_norm_eps 1e-06
layer_types null
num_attention_heads 12
num_channels 3
num_hidden_layers 12
out_hidden_size 1024
patch_size 16
scale_factor 4
sliding_window null
use_fine_route true
)"},
{"granite_speech", R"(=audio_token_id audio_token_index
attention_chunk_size null
audio_token_index 49155
downsample_rate 5
has_lora_adapter true
!initializer_range
layer_types null
sliding_window null
tie_word_embeddings true
window_size 15
)"},
{"granite_speech_encoder", R"(=hidden_size hidden_dim
=num_attention_heads num_heads
=num_hidden_layers num_layers
=num_mel_bins input_dim
attention_chunk_size null
context_size 200
conv_expansion_factor 2
conv_kernel_size 15
dim_head 128
dropout 0.1
feedforward_mult 4
hidden_dim 1024
input_dim 160
layer_types null
max_pos_emb 512
num_heads 8
num_layers 10
output_dim 42
sliding_window null
)"},
{"granite_speech_plus", R"(=audio_token_id audio_token_index
attention_chunk_size null
audio_token_index 49155
downsample_rate 5
has_lora_adapter true
!initializer_range
layer_types null
sliding_window null
tie_word_embeddings true
window_size 15
)"},
{"granite_speech_plus_encoder", R"(=hidden_size hidden_dim
=num_attention_heads num_heads
=num_hidden_layers num_layers
=num_mel_bins input_dim
attention_chunk_size null
cat_hidden_layers null
context_size 200
conv_expansion_factor 2
conv_kernel_size 15
dim_head 128
dropout 0.1
feedforward_mult 4
hidden_dim 1024
input_dim 160
layer_types null
max_pos_emb 512
num_heads 8
num_layers 10
output_dim 42
sliding_window null
)"},
{"granite_swa", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
attention_multiplier 1.0
embedding_multiplier 1.0
hidden_act "silu"
hidden_size 2560
!initializer_range
intermediate_size 8192
layer_rope_theta [10000.0,10000.0,10000.0,10000.0,10000.0,10000.0,10000.0,10000.0,10000.0,10000.0,10000.0,10000.0,10000.0,10000.0,10000.0,10000.0,10000.0,10000.0,10000.0,10000.0,10000.0,10000.0,10000.0,10000.0]
layer_types ["full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention"]
logits_scaling 1.0
max_position_embeddings 8192
mlp_bias false
num_attention_heads 20
num_hidden_layers 24
num_key_value_heads 4
pad_token_id null
residual_multiplier 1.0
rms_norm_eps 1e-05
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
sliding_window 128
tie_word_embeddings true
vocab_size 100352
)"},
{"granitemoe", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
attention_multiplier 1.0
embedding_multiplier 1.0
hidden_act "silu"
hidden_size 4096
initializer_range 0.02
intermediate_size 11008
layer_types null
logits_scaling 1.0
max_position_embeddings 2048
num_attention_heads 32
num_experts_per_tok 2
num_hidden_layers 32
num_key_value_heads 32
num_local_experts 8
output_router_logits false
pad_token_id null
residual_multiplier 1.0
rms_norm_eps 1e-06
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
router_aux_loss_coef 0.001
sliding_window null
tie_word_embeddings false
vocab_size 32000
)"},
{"granitemoe_swa", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
attention_multiplier 1.0
embedding_multiplier 1.0
hidden_act "silu"
hidden_size 4096
initializer_range 0.02
intermediate_size 11008
layer_rope_theta [10000.0,10000.0,10000.0,10000.0,10000.0,10000.0,10000.0,10000.0,10000.0,10000.0,10000.0,10000.0,10000.0,10000.0,10000.0,10000.0,10000.0,10000.0,10000.0,10000.0,10000.0,10000.0,10000.0,10000.0,10000.0,10000.0,10000.0,10000.0,10000.0,10000.0,10000.0,10000.0]
layer_types ["full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention"]
logits_scaling 1.0
max_position_embeddings 2048
num_attention_heads 32
num_experts_per_tok 2
num_hidden_layers 32
num_key_value_heads 32
num_local_experts 8
output_router_logits false
pad_token_id null
residual_multiplier 1.0
rms_norm_eps 1e-06
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
router_aux_loss_coef 0.001
shared_intermediate_size 0
sliding_window 128
tie_word_embeddings false
vocab_size 32000
)"},
{"granitemoehybrid", R"(=layers_block_type layer_types
attention_bias false
attention_chunk_size null
attention_dropout 0.0
attention_multiplier 1.0
embedding_multiplier 1.0
hidden_act "silu"
hidden_size 4096
initializer_range 0.02
intermediate_size 11008
layer_types ["linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention"]
logits_scaling 1.0
mamba_chunk_size 256
mamba_conv_bias true
mamba_d_conv 4
mamba_d_head 64
mamba_d_state 256
mamba_expand 2
mamba_n_groups 1
mamba_n_heads 128
mamba_proj_bias false
max_position_embeddings 2048
num_attention_heads 32
num_experts_per_tok 2
num_hidden_layers 32
num_key_value_heads 32
num_local_experts 8
output_router_logits false
pad_token_id null
position_embedding_type null
residual_multiplier 1.0
rms_norm_eps 1e-06
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
router_aux_loss_coef 0.001
shared_intermediate_size 1024
sliding_window null
tie_word_embeddings false
time_step_limit [0.0,Infinity]
vocab_size 32000
)"},
{"granitemoeshared", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
attention_multiplier 1.0
embedding_multiplier 1.0
hidden_act "silu"
hidden_size 4096
initializer_range 0.02
intermediate_size 11008
layer_types null
logits_scaling 1.0
max_position_embeddings 2048
num_attention_heads 32
num_experts_per_tok 2
num_hidden_layers 32
num_key_value_heads 32
num_local_experts 8
output_router_logits false
pad_token_id null
residual_multiplier 1.0
rms_norm_eps 1e-06
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
router_aux_loss_coef 0.001
shared_intermediate_size 0
sliding_window null
tie_word_embeddings false
vocab_size 32000
)"},
{"gte", R"(attention_chunk_size null
attention_probs_dropout_prob 0.0
classifier_dropout null
hidden_act "gelu"
hidden_dropout_prob 0.1
hidden_size 768
!initializer_range
intermediate_size 3072
layer_norm_eps 1e-12
layer_types null
max_position_embeddings 8192
num_attention_heads 12
num_hidden_layers 12
pad_token_id 1
rope_parameters {"rope_theta":160000.0,"rope_type":"default"}
sliding_window null
tie_word_embeddings true
type_vocab_size 1
vocab_size 250048
)"},
{"helium", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
head_dim 128
hidden_act "silu"
hidden_size 2560
!initializer_range
intermediate_size 7040
layer_types null
max_position_embeddings 4096
mlp_bias false
num_attention_heads 20
num_hidden_layers 24
num_key_value_heads 20
pad_token_id 3
rms_norm_eps 1e-08
rope_parameters {"rope_theta":100000.0,"rope_type":"default"}
sliding_window null
tie_word_embeddings false
vocab_size 48000
)"},
{"hgnet_v2", R"(attention_chunk_size null
depths [3,4,6,3]
embedding_size 64
hidden_act "relu"
hidden_sizes [256,512,1024,2048]
!initializer_range
layer_types null
num_channels 3
out_features ["stage4"]
out_indices [4]
sliding_window null
stage_downsample [false,true,true,true]
stage_downsample_strides [2,2,2,2]
stage_in_channels [48,128,512,1024]
stage_kernel_size [3,3,5,5]
stage_light_block [false,false,true,true]
stage_mid_channels [48,96,192,384]
!stage_names
stage_num_blocks [1,1,3,1]
stage_numb_of_layers [6,6,6,6]
stage_out_channels [128,512,1024,2048]
stem_channels [3,32,48]
stem_strides [2,1,1,2,1]
use_learnable_affine_block false
)"},
{"hiera", R"(=num_hidden_layers num_layers
attention_chunk_size null
decoder_depth null
decoder_hidden_size null
decoder_num_heads null
depths [2,3,16,3]
drop_path_rate 0.0
embed_dim 96
embed_dim_multiplier 2.0
hidden_act "gelu"
hidden_size 768
image_size [224,224]
initializer_range 0.02
layer_norm_eps 1e-06
layer_norm_init 1.0
layer_types null
mask_ratio 0.6
masked_unit_attention [true,true,false,false]
masked_unit_size [8,8]
mlp_ratio 4.0
normalize_pixel_loss true
num_channels 3
num_heads [1,2,4,8]
num_query_pool 3
out_features ["stage4"]
out_indices [4]
patch_padding [3,3]
patch_size [7,7]
patch_stride [4,4]
query_stride [2,2]
sliding_window null
!stage_names
)"},
{"hrm_text", R"(H_cycles 2
L_bp_cycles [2]
L_cycles 3
attention_bias false
attention_chunk_size null
attention_dropout 0.0
embedding_scale 50.0
head_dim 128
hidden_act "silu"
hidden_size 1536
initializer_range 0.02
intermediate_size 4096
layer_types null
max_position_embeddings 2048
mlp_bias false
num_attention_heads 12
num_hidden_layers 128
num_layers_per_stack 16
pad_token_id null
prefix_lm true
rms_norm_eps 1e-06
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
sliding_window null
tie_word_embeddings false
vocab_size 151808
)"},
{"hunyuan_v1_dense", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
!eod_token_id
head_dim null
hidden_act "silu"
hidden_size 4096
!initializer_range
intermediate_size 11008
layer_types null
max_position_embeddings 2048
num_attention_heads 32
num_hidden_layers 32
num_key_value_heads 32
pad_token_id 0
!pretraining_tp
rms_norm_eps 1e-05
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
sliding_window null
tie_word_embeddings false
vocab_size 290943
)"},
{"hunyuan_v1_moe", R"(=num_experts_per_tok moe_topk
=num_local_experts num_experts
attention_bias false
attention_chunk_size null
attention_dropout 0.0
!eod_token_id
head_dim null
hidden_act "silu"
hidden_size 4096
initializer_range 0.02
intermediate_size 11008
layer_types null
max_position_embeddings 2048
moe_topk 1
num_attention_heads 32
num_experts 1
num_hidden_layers 32
num_key_value_heads 32
!output_router_logits
pad_token_id 0
!pretraining_tp
rms_norm_eps 1e-05
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
sep_token_id 4
sliding_window null
tie_word_embeddings false
vocab_size 290943
)"},
{"hunyuan_vl", R"(attention_chunk_size null
!im_end_id
!im_newline_id
!im_start_id
image_token_id 120120
layer_types null
sliding_window null
tie_word_embeddings true
)"},
{"hunyuan_vl_text", R"(=attention_head_dim head_dim
=org_vocab_size vocab_size
=pad_id pad_token_id
attention_bias false
attention_chunk_size null
attention_dropout 0.0
!eod_token_id
head_dim null
hidden_act "silu"
hidden_size 4096
!initializer_range
intermediate_size 11008
layer_types null
max_position_embeddings 2048
num_attention_heads 32
num_hidden_layers 32
num_key_value_heads 32
pad_token_id 0
!pretraining_tp
rms_norm_eps 1e-05
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
sep_token_id 4
sliding_window null
tie_word_embeddings true
vocab_size 290943
)"},
{"hunyuan_vl_vision", R"(=attention_heads num_attention_heads
=layer_norm_eps rms_norm_eps
attention_chunk_size null
attention_dropout 0.0
hidden_act "gelu"
hidden_size 1152
!img_max_token_num
intermediate_size 4304
interpolate_mode "bilinear"
layer_types null
max_image_size 2048
!max_vit_seq_len
!min_image_size
num_attention_heads 16
num_channels 3
num_hidden_layers 27
num_key_value_heads 16
!out_hidden_size
patch_size 16
rms_norm_eps 1e-05
sliding_window null
spatial_merge_size 2
!temporal_patch_size
text_hidden_size 3072
)"},
{"hy_v3", R"(=num_local_experts num_experts
attention_bias false
attention_chunk_size null
attention_dropout 0.0
enable_moe_fp32_combine true
head_dim 128
hidden_act "silu"
hidden_size 4096
initializer_range 0.006
intermediate_size 13312
layer_types null
max_position_embeddings 131072
mlp_bias false
mlp_layer_types ["dense","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse"]
moe_intermediate_size 1536
num_attention_heads 64
num_experts 192
num_experts_per_tok 8
num_hidden_layers 80
num_key_value_heads 8
num_shared_experts 1
!output_router_logits
pad_token_id null
rms_norm_eps 1e-05
rope_parameters {"rope_theta":11158840.0,"rope_type":"default"}
router_scaling_factor 2.826
sliding_window null
tie_word_embeddings false
vocab_size 120832
)"},
{"hy_v4", R"(=num_local_experts n_routed_experts
attention_bias false
attention_chunk_size null
attention_dropout 0.0
hc_eps 1e-06
hc_magnitude 2.0
hc_mult 4
head_dim 64
hidden_act "silu"
hidden_size 2816
index_head_dim 128
index_n_heads 16
index_topk 2048
indexer_types ["full","full","shared","shared","shared","full","shared","shared","shared","full","shared","shared","shared","full","shared","shared","shared","full","shared","shared","shared","full","shared","shared","shared","full","shared","shared","shared","full","shared","shared","shared","full"]
initializer_range 0.006
intermediate_size 6912
kv_lora_rank 512
layer_types ["indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention"]
learnable_sink_init 0.0
max_position_embeddings 262144
mlp_layer_types ["dense","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse"]
moe_intermediate_size 768
n_group 1
n_routed_experts 256
n_shared_experts 1
norm_topk_prob true
num_attention_heads 32
num_experts_per_tok 8
num_hidden_layers 34
num_key_value_heads 32
!output_router_logits
pad_token_id 120002
q_lora_rank 1536
!qk_head_dim
qk_nope_head_dim 192
qk_rope_head_dim 64
rms_norm_eps 1e-05
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
routed_scaling_factor 2.827
sliding_window null
swiglu_limit 10.0
tie_word_embeddings false
topk_group 1
v_head_dim 256
vocab_size 120832
)"},
{"hy_v4_vl", R"(attention_chunk_size null
image_token_id 120120
layer_types null
sliding_window null
tie_word_embeddings false
video_token_id 120124
)"},
{"hy_v4_vl_text", R"(=num_local_experts n_routed_experts
attention_bias false
attention_chunk_size null
attention_dropout 0.0
hc_eps 1e-06
hc_magnitude 2.0
hc_mult 4
head_dim 64
hidden_act "silu"
hidden_size 6144
index_head_dim 128
index_n_heads 32
index_topk 2048
indexer_types ["full","full","shared","shared","shared","full","shared","shared","shared","full","shared","shared","shared","full","shared","shared","shared","full","shared","shared","shared","full","shared","shared","shared","full","shared","shared","shared","full","shared","shared","shared","full","shared","shared","shared","full","shared","shared","shared","full","shared","shared","shared","full","shared","shared","shared","full","shared","shared","shared","full","shared","shared","shared","full","shared","shared","shared","full","shared","shared","shared","full","shared","shared","shared","full","shared","shared","shared","full","shared","shared","shared","full"]
initializer_range 0.006
intermediate_size 18432
kv_lora_rank 512
layer_types ["indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention"]
learnable_sink_init 0.0
max_position_embeddings 262144
mlp_layer_types ["dense","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse"]
moe_intermediate_size 2048
n_group 1
n_routed_experts 256
n_shared_experts 1
norm_topk_prob true
num_attention_heads 64
num_experts_per_tok 8
num_hidden_layers 78
num_key_value_heads 64
!output_router_logits
pad_token_id 120002
q_lora_rank 2048
!qk_head_dim
qk_nope_head_dim 192
qk_rope_head_dim 64
rms_norm_eps 1e-05
rope_parameters {"rope_theta":10000.0,"rope_type":"default","mrope_section":[12,10,10]}
routed_scaling_factor 2.827
sliding_window null
swiglu_limit 10.0
tie_word_embeddings false
topk_group 1
v_head_dim 256
vocab_size 120832
)"},
{"hy_v4_vl_vision", R"(=attention_heads num_attention_heads
=layer_norm_eps rms_norm_eps
attention_chunk_size null
attention_dropout 0.0
hidden_act "gelu"
hidden_size 1536
intermediate_size 6144
interpolate_mode "bilinear"
layer_types null
max_image_size 2048
num_attention_heads 16
num_channels 3
num_hidden_layers 40
num_key_value_heads 16
out_hidden_size 6144
patch_size 16
rms_norm_eps 1e-05
sliding_window null
spatial_merge_size 2
)"},
{"hyperclovax", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
attention_multiplier 0.08838834764831845
embedding_multiplier 1.0
head_dim 128
hidden_act "silu"
hidden_size 4096
!initializer_range
intermediate_size 11008
layer_types null
logits_scaling 1.0
max_position_embeddings 2048
mlp_bias false
num_attention_heads 32
num_hidden_layers 32
num_key_value_heads 32
pad_token_id null
residual_multiplier 1.0
rms_norm_eps 1e-06
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
sliding_window null
tie_word_embeddings false
use_post_norm true
vocab_size 32000
)"},
{"hyperclovax_vision_v2", R"(attention_chunk_size null
image_token_id 128060
layer_types null
sliding_window null
tie_word_embeddings true
video_token_id 128061
)"},
{"ibert", R"(attention_chunk_size null
attention_probs_dropout_prob 0.1
force_dequant "none"
hidden_act "gelu"
hidden_dropout_prob 0.1
hidden_size 768
initializer_range 0.02
intermediate_size 3072
layer_norm_eps 1e-12
layer_types null
max_position_embeddings 512
num_attention_heads 12
num_hidden_layers 12
pad_token_id 1
quant_mode false
sliding_window null
tie_word_embeddings true
type_vocab_size 2
vocab_size 30522
)"},
{"idefics", R"(additional_vocab_size 0
alpha_initializer "zeros"
alpha_type "float"
alphas_initializer_range 0.0
attention_chunk_size null
cross_layer_interval 1
dropout 0.0
freeze_lm_head false
freeze_text_layers true
freeze_text_module_exceptions []
freeze_vision_layers true
freeze_vision_module_exceptions []
hidden_act "silu"
hidden_size 4096
!initializer_range
intermediate_size 11008
layer_types null
max_position_embeddings 2048
num_attention_heads 32
num_hidden_layers 32
pad_token_id 0
qk_layer_norms false
rms_norm_eps 1e-06
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
sliding_window null
tie_word_embeddings false
use_resampler false
vocab_size 32000
)"},
{"idefics2", R"(attention_chunk_size null
image_token_id 32001
layer_types null
sliding_window null
tie_word_embeddings false
)"},
{"idefics2_perceiver", R"(attention_chunk_size null
attention_dropout 0.0
hidden_act "silu"
hidden_size 4096
!initializer_range
layer_types null
num_key_value_heads 4
resampler_depth 3
resampler_head_dim 96
resampler_n_heads 16
resampler_n_latents 64
rms_norm_eps 1e-06
sliding_window null
)"},
{"idefics2_vision", R"(attention_chunk_size null
attention_dropout 0.0
hidden_act "gelu_pytorch_tanh"
hidden_size 768
image_size 224
!initializer_range
intermediate_size 3072
layer_norm_eps 1e-06
layer_types null
num_attention_heads 12
num_channels 3
num_hidden_layers 12
patch_size 32
sliding_window null
)"},
{"idefics3", R"(attention_chunk_size null
image_token_id 128257
layer_types null
pad_token_id null
scale_factor 2
sliding_window null
tie_word_embeddings false
)"},
{"idefics3_vision", R"(attention_chunk_size null
attention_dropout 0.0
hidden_act "gelu_pytorch_tanh"
hidden_size 1152
image_size 224
!initializer_range
intermediate_size 3072
layer_norm_eps 1e-06
layer_types null
num_attention_heads 16
num_channels 3
num_hidden_layers 12
pad_token_id null
patch_size 32
sliding_window null
)"},
{"idefics_perciever", R"(attention_chunk_size null
layer_types null
!qk_layer_norms_perceiver
resampler_depth 6
resampler_head_dim 96
resampler_n_heads 16
resampler_n_latents 64
sliding_window null
use_resampler false
)"},
{"idefics_vision", R"(=hidden_size embed_dim
attention_chunk_size null
attention_dropout 0.0
embed_dim 768
hidden_act "gelu"
!image_size
!initializer_factor
!initializer_range
intermediate_size 5120
!layer_norm_eps
layer_types null
num_attention_heads 16
!num_channels
num_hidden_layers 32
!patch_size
sliding_window null
)"},
{"ijepa", R"(attention_chunk_size null
attention_probs_dropout_prob 0.0
hidden_act "gelu"
hidden_dropout_prob 0.0
hidden_size 768
image_size 224
initializer_range 0.02
intermediate_size 3072
layer_norm_eps 1e-12
layer_types null
num_attention_heads 12
num_channels 3
num_hidden_layers 12
patch_size 16
pooler_act "tanh"
pooler_output_size 768
qkv_bias true
sliding_window null
)"},
{"imagegpt", R"(=hidden_size n_embd
=max_position_embeddings n_positions
=num_attention_heads n_head
=num_hidden_layers n_layer
activation_function "quick_gelu"
add_cross_attention false
attention_chunk_size null
attn_pdrop 0.1
embd_pdrop 0.1
initializer_range 0.02
layer_norm_epsilon 1e-05
layer_types null
n_embd 512
n_head 8
n_inner null
n_layer 24
n_positions 1024
pad_token_id null
reorder_and_upcast_attn false
resid_pdrop 0.1
scale_attn_by_inverse_layer_idx false
scale_attn_weights true
sliding_window null
tie_word_embeddings false
vocab_size 513
)"},
{"inkling2", R"(attention_chunk_size null
image_token_id 200054
layer_types null
sliding_window null
)"},
{"inkling2_loop", R"(attention_chunk_size null
image_token_id 200054
layer_types null
loop_config null
sliding_window null
)"},
{"inkling2_loop_text", R"(=intermediate_size moe_intermediate_size
=model_max_length max_position_embeddings
=num_local_experts n_routed_experts
=routed_scaling_factor route_scale
=sconv_kernel_size conv_kernel_size
=sliding_window sliding_window_size
attention_chunk_size null
attention_dropout 0.0
conv_kernel_size 4
d_rel 16
final_logit_softcapping 30.0
head_dim 128
!hidden_act
hidden_size 2304
initializer_range 0.02
layer_types ["hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid"]
log_scaling_alpha 0.1
log_scaling_n_floor 8192
loop_config null
loop_gate_rank 64
loop_layer_index_end 18
loop_layer_index_start 6
loop_num_passes 3
max_position_embeddings 1048576
mlp_gate_softcap 4.0
mlp_up_softcap 25.0
moe_intermediate_size 1152
n_layers_per_attn_res_block 6
n_routed_experts 128
num_attention_heads 24
num_experts_per_tok 8
num_hidden_layers 24
num_key_value_heads 8
pad_token_id null
qk_l2_clip_threshold 22.627416997969522
rel_extent 1024
rel_l2_clip_threshold 8.0
rms_norm_eps 1e-06
route_scale 8.0
scoring_func "sigmoid"
sliding_window null
sliding_window_size 1024
swa_head_dim 128
swa_num_attention_heads 24
swa_num_key_value_heads 8
unpadded_vocab_size 200058
vocab_size 201024
)"},
{"inkling2_text", R"(=intermediate_size moe_intermediate_size
=model_max_length max_position_embeddings
=num_local_experts n_routed_experts
=routed_scaling_factor route_scale
=sconv_kernel_size conv_kernel_size
=sliding_window sliding_window_size
attention_chunk_size null
attention_dropout 0.0
conv_kernel_size 4
d_rel 16
final_logit_softcapping 30.0
head_dim 128
hidden_act "silu"
hidden_size 4608
initializer_range 0.02
layer_types ["hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid"]
log_scaling_alpha 0.1
log_scaling_n_floor 128000
max_position_embeddings 1048576
mlp_gate_softcap 4.0
mlp_up_softcap 25.0
moe_intermediate_size 2304
n_layers_per_attn_res_block 6
n_routed_experts 384
num_attention_heads 48
num_experts_per_tok 8
num_hidden_layers 48
num_key_value_heads 8
pad_token_id null
qk_l2_clip_threshold 22.627416997969522
rel_extent 1024
rel_l2_clip_threshold 8.0
rms_norm_eps 1e-06
route_scale 8.0
scoring_func "sigmoid"
sliding_window null
sliding_window_size 1024
swa_head_dim 128
swa_num_attention_heads 48
swa_num_key_value_heads 8
unpadded_vocab_size 200058
vocab_size 201024
)"},
{"inkling2_vision", R"(=adapter_merge_size spatial_merge_size
=native_patch_size patch_size
attention_chunk_size null
attention_dropout 0.0
hidden_act "gelu"
hidden_size 1024
initializer_range 0.02
intermediate_size 4096
layer_norm_eps 1e-05
layer_scale_init_value 0.1
layer_types null
mlp_ratio 4.0
num_attention_heads 16
num_channels 3
num_hidden_layers 23
patch_size 20
posemb_grid_size 32
projection_hidden_dim 4096
projector_bias false
rope_parameters {"rope_theta":10000.0,"rope_type":"axial"}
sliding_window null
spatial_merge_size 2
text_hidden_size 4608
)"},
{"inkling_audio", R"(=codebook_size mel_vocab_size
=hidden_size text_hidden_size
=num_codebooks n_mel_bins
attention_chunk_size null
dense_intermediate_size null
dense_mlp_idx null
initializer_range 0.02
layer_types null
mel_vocab_size 256
mtp_config null
n_mel_bins 80
rms_norm_eps 1e-06
sliding_window null
text_hidden_size 6144
)"},
{"inkling_mm_model", R"(attention_chunk_size null
!audio_bos_token_id
audio_token_id 200053
dense_intermediate_size null
dense_mlp_idx null
!image_bos_token_id
image_token_id 200054
layer_types null
mtp_config null
sliding_window null
)"},
{"inkling_text", R"(=embedding_multiplier logits_mup_width_multiplier
=model_max_length max_position_embeddings
=num_local_experts n_routed_experts
=sconv_kernel_size conv_kernel_size
=sliding_window sliding_window_size
attention_chunk_size null
attention_dropout 0.0
chain_hidden_post_norm false
conv_kernel_size 4
d_rel 16
dense_intermediate_size null
dense_mlp_idx null
head_dim 128
hidden_act "silu"
hidden_size 6144
initializer_range 0.02
intermediate_size 24576
layer_types ["hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid_sliding","hybrid"]
local_layer_ids null
log_scaling_alpha 0.1
log_scaling_n_floor null
logits_mup_width_multiplier 24.0
max_position_embeddings 131072
mlp_layer_types ["sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse"]
moe_intermediate_size 3072
mtp_config null
mtp_hidden_states_first true
mtp_local_layer_ids null
n_routed_experts 256
n_shared_experts 2
num_attention_heads 64
num_experts_per_tok 6
num_hidden_layers 66
num_key_value_heads 8
num_mtp_layers null
number_of_conv_states 4
pad_token_id null
rel_extent 1024
rms_norm_eps 1e-06
!rms_norm_eps_moe_gate
route_scale 8.0
!shared_expert_sink
sliding_window null
sliding_window_size 512
swa_head_dim 128
swa_num_attention_heads 64
swa_num_key_value_heads 16
unpadded_vocab_size null
vocab_size 201024
)"},
{"inkling_vision", R"(=num_hidden_layers n_layers
attention_chunk_size null
dense_intermediate_size null
dense_mlp_idx null
hidden_size 1024
initializer_range 0.02
layer_types null
mtp_config null
n_layers 24
num_attention_heads 16
num_channels 3
patch_size 40
rms_norm_eps 1e-06
sliding_window null
temporal_patch_size 2
text_hidden_size 6144
)"},
{"instructblip", R"(=image_token_id image_token_index
attention_chunk_size null
image_token_index null
!initializer_factor
initializer_range 0.02
layer_types null
num_query_tokens 32
sliding_window null
use_decoder_only_language_model true
)"},
{"instructblip_qformer", R"(attention_chunk_size null
attention_probs_dropout_prob 0.1
cross_attention_frequency 2
encoder_hidden_size 1408
hidden_act "gelu"
hidden_dropout_prob 0.1
hidden_size 768
initializer_range 0.02
intermediate_size 3072
layer_norm_eps 1e-12
layer_types null
max_position_embeddings 512
num_attention_heads 12
num_hidden_layers 12
pad_token_id 0
sliding_window null
vocab_size 30522
)"},
{"instructblip_vision_model", R"(attention_chunk_size null
attention_dropout 0.0
hidden_act "gelu"
hidden_size 1408
image_size 224
initializer_range 1e-10
intermediate_size 6144
layer_norm_eps 1e-06
layer_types null
num_attention_heads 16
num_hidden_layers 39
patch_size 14
qkv_bias true
sliding_window null
)"},
{"instructblipvideo", R"(=video_token_id video_token_index
attention_chunk_size null
!initializer_factor
initializer_range 0.02
layer_types null
num_query_tokens 32
sliding_window null
use_decoder_only_language_model true
video_token_index null
)"},
{"instructblipvideo_qformer", R"(attention_chunk_size null
attention_probs_dropout_prob 0.1
cross_attention_frequency 2
encoder_hidden_size 1408
hidden_act "gelu"
hidden_dropout_prob 0.1
hidden_size 768
initializer_range 0.02
intermediate_size 3072
layer_norm_eps 1e-12
layer_types null
max_position_embeddings 512
num_attention_heads 12
num_hidden_layers 12
pad_token_id 0
sliding_window null
vocab_size 30522
)"},
{"instructblipvideo_vision_model", R"(attention_chunk_size null
attention_dropout 0.0
hidden_act "gelu"
hidden_size 1408
image_size 224
initializer_range 1e-10
intermediate_size 6144
layer_norm_eps 1e-06
layer_types null
num_attention_heads 16
num_hidden_layers 39
patch_size 14
qkv_bias true
sliding_window null
)"},
{"internlm3", R"(=bias mlp_bias
=qkv_bias attention_bias
attention_bias false
attention_chunk_size null
attention_dropout 0.0
head_dim 128
!hidden_act
hidden_size 4096
!initializer_range
!intermediate_size
layer_types null
max_position_embeddings 32768
mlp_bias false
num_attention_heads 32
num_hidden_layers 48
num_key_value_heads 2
pad_token_id 2
rms_norm_eps 1e-05
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
sliding_window null
tie_word_embeddings false
vocab_size 128512
)"},
{"internvl", R"(attention_chunk_size null
downsample_ratio 0.5
!image_seq_length
image_token_id 151667
layer_types null
projector_hidden_act "gelu"
sliding_window null
tie_word_embeddings true
!vision_feature_layer
!vision_feature_select_strategy
)"},
{"internvl_vision", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
hidden_act "gelu"
hidden_dropout_prob 0.0
hidden_size 1024
image_size [448,448]
!initializer_range
intermediate_size 4096
layer_norm_eps 1e-06
layer_scale_init_value 0.1
layer_types null
norm_type "layer_norm"
num_attention_heads 16
num_channels 3
num_hidden_layers 24
patch_size [14,14]
projection_dropout 0.0
sliding_window null
use_absolute_position_embeddings true
use_mask_token false
use_mean_pooling true
use_qk_norm false
)"},
{"iquestcoder", R"(!attention_bias
attention_chunk_size null
attention_dropout 0.0
head_dim 128
!hidden_act
hidden_size 5120
!initializer_range
!intermediate_size
layer_types null
max_position_embeddings 131072
!mlp_bias
num_attention_heads 40
num_hidden_layers 80
num_key_value_heads 8
pad_token_id null
rms_norm_eps 1e-05
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
sliding_window null
tie_word_embeddings false
vocab_size 76800
)"},
{"jais2", R"(attention_bias true
attention_chunk_size null
attention_dropout 0.0
head_dim 128
hidden_act "relu2"
hidden_size 3328
!initializer_range
intermediate_size 26624
layer_norm_eps 1e-05
layer_types null
max_position_embeddings 8192
mlp_bias true
num_attention_heads 26
num_hidden_layers 32
num_key_value_heads 26
pad_token_id null
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
sliding_window null
tie_word_embeddings false
vocab_size 150272
)"},
{"jamba", R"(=num_local_experts num_experts
attention_chunk_size null
attention_dropout 0.0
attn_layer_offset 4
attn_layer_period 8
expert_layer_offset 1
expert_layer_period 2
hidden_act "silu"
hidden_size 4096
initializer_range 0.02
intermediate_size 14336
layer_types null
mamba_conv_bias true
mamba_d_conv 4
mamba_d_state 16
mamba_dt_rank 256
mamba_expand 2
mamba_proj_bias false
max_position_embeddings 262144
num_attention_heads 32
num_experts 16
num_experts_per_tok 2
num_hidden_layers 32
num_key_value_heads 8
output_router_logits false
pad_token_id 0
rms_norm_eps 1e-06
router_aux_loss_coef 0.001
sliding_window null
tie_word_embeddings false
use_associative_scan true
use_mamba_kernels true
use_mambapy false
vocab_size 65536
)"},
{"janus", R"(attention_chunk_size null
image_token_id 100581
layer_types null
sliding_window null
tie_word_embeddings true
)"},
{"janus_vision_model", R"(attention_bias true
attention_chunk_size null
attention_dropout 0.0
depth 2
hidden_act "gelu"
hidden_dropout_rate 0.0
hidden_size 1024
image_size 384
!initializer_range
layer_norm_eps 1e-06
layer_types null
mlp_ratio 4.0
num_attention_heads 16
num_channels 3
num_hidden_layers 24
num_image_tokens 576
patch_size 16
projection_dim 2048
projection_dropout 0.0
sliding_window null
use_qk_norm false
)"},
{"janus_vqgan", R"(attention_chunk_size null
base_channels 128
channel_multiplier [1,1,2,2,4]
double_latent false
dropout 0.0
embed_dim 8
hidden_act "gelu"
image_token_embed_dim 2048
in_channels 3
!initializer_range
latent_channels 256
layer_types null
num_embeddings 16384
num_hidden_layers 2
num_patches 32
num_res_blocks 2
out_channels 3
projection_dim 2048
sliding_window null
)"},
{"jetmoe", R"(=head_dim kv_channels
activation_function "silu"
attention_chunk_size null
attention_dropout 0.0
aux_loss_coef 0.01
hidden_size 2048
initializer_range 0.01
intermediate_size 5632
kv_channels 128
layer_types null
max_position_embeddings 4096
num_attention_heads 32
num_experts_per_tok 2
num_hidden_layers 12
num_key_value_heads 16
num_local_experts 8
output_router_logits false
pad_token_id null
rms_norm_eps 1e-06
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
sliding_window null
tie_word_embeddings true
vocab_size 32000
)"},
{"jina_embeddings_v3", R"(attention_chunk_size null
attention_probs_dropout_prob 0.1
classifier_dropout null
hidden_act "gelu"
hidden_dropout_prob 0.1
hidden_size 1024
!initializer_range
intermediate_size 4096
layer_norm_eps 1e-05
layer_types null
max_position_embeddings 8194
num_attention_heads 16
num_hidden_layers 24
pad_token_id 1
rope_parameters {"rope_theta":20000.0,"rope_type":"default"}
sliding_window null
tie_word_embeddings true
type_vocab_size 1
vocab_size 250002
)"},
{"kimi_k25", R"(attention_chunk_size null
image_token_id 163605
layer_types null
projection_hidden_size 1152
projection_layer_norm_eps 1e-05
sliding_window null
tie_word_embeddings true
video_token_id 163840
!vision_end_token_id
!vision_start_token_id
)"},
{"kimi_k25_vision", R"(attention_chunk_size null
hidden_act "gelu_pytorch_tanh"
hidden_size 1152
intermediate_size 4304
layer_types null
merge_kernel_size [2,2]
num_attention_heads 16
num_hidden_layers 27
patch_size 14
pos_emb_height 64
pos_emb_time 4
pos_emb_width 64
rope_parameters {"rope_theta":10000.0,"rope_type":"axial"}
sliding_window null
)"},
{"kimi_linear", R"(=max_position_embeddings model_max_length
=n_group num_expert_group
=n_shared_experts num_shared_experts
=norm_topk_prob moe_renormalize
=num_experts_per_tok num_experts_per_token
=num_local_experts num_experts
attention_bias false
attention_chunk_size null
attention_dropout 0.0
first_k_dense_replace null
head_dim 64
hidden_act "silu"
hidden_size 2304
initializer_range 0.02
intermediate_size 9216
kv_lora_rank 512
layer_types ["linear_attention","linear_attention","linear_attention","linear_attention","full_attention","linear_attention","linear_attention","linear_attention","full_attention","linear_attention","linear_attention","linear_attention","full_attention","linear_attention","linear_attention","linear_attention","full_attention","linear_attention","linear_attention","linear_attention","full_attention","linear_attention","linear_attention","linear_attention","full_attention","linear_attention","linear_attention"]
linear_attn_config null
linear_conv_kernel_dim 4
linear_head_dim 128
linear_num_heads 32
mlp_layer_types ["dense","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse"]
model_max_length 1048576
moe_intermediate_size 1024
moe_renormalize true
num_attention_heads 32
num_expert_group 1
num_experts 256
num_experts_per_token 8
num_hidden_layers 27
num_key_value_heads 32
num_shared_experts 1
!output_router_logits
pad_token_id 163839
!pretraining_tp
q_lora_rank null
!qk_head_dim
qk_nope_head_dim 128
qk_rope_head_dim 64
rms_norm_eps 1e-05
routed_scaling_factor 2.446
sliding_window null
tie_word_embeddings false
topk_group 1
v_head_dim 128
vocab_size 163840
)"},
{"kolibri1", R"(=num_experts num_local_experts
attention_chunk_size null
attention_dropout 0.0
head_dim 128
hidden_act "silu"
hidden_size 2560
initializer_range 0.02
layer_types ["sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention"]
max_position_embeddings 262144
moe_intermediate_size 512
norm_topk_prob false
num_attention_heads 48
num_experts_per_tok 6
num_hidden_layers 50
num_key_value_heads 4
num_local_experts 384
!output_router_logits
pad_token_id null
rms_norm_eps 1e-06
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
shared_expert_intermediate_size 512
sliding_window 513
tie_word_embeddings false
vocab_size 128000
)"},
{"kosmos-2", R"(attention_chunk_size null
latent_query_num 64
layer_types null
sliding_window null
tie_word_embeddings true
)"},
{"kosmos-2.5", R"(attention_chunk_size null
latent_query_num 2048
layer_types null
sliding_window null
tie_word_embeddings true
)"},
{"kosmos_2_5_text_model", R"(=hidden_size embed_dim
=num_attention_heads attention_heads
=num_hidden_layers layers
activation_dropout 0.0
activation_function "gelu"
attention_chunk_size null
attention_dropout 0.0
attention_heads 16
dropout 0.1
embed_dim 1536
ffn_dim 6144
!init_std
layer_norm_eps 1e-05
layer_types null
layerdrop 0.0
layers 24
max_position_embeddings 4096
pad_token_id 1
scale_embedding true
sliding_window null
tie_word_embeddings true
vocab_size 108481
)"},
{"kosmos_2_5_vision_model", R"(attention_chunk_size null
attention_dropout 0.0
dense_act_fn "gelu_new"
dropout_rate 0.0
head_dim 64
hidden_size 1536
!initializer_factor
!initializer_range
intermediate_size 3968
layer_norm_eps 1e-06
layer_types null
max_num_patches 4096
num_attention_heads 24
num_hidden_layers 18
patch_embed_hidden_size 768
sliding_window null
)"},
{"kosmos_2_text_model", R"(=hidden_size embed_dim
=num_attention_heads attention_heads
=num_hidden_layers layers
activation_dropout 0.0
activation_function "gelu"
add_cross_attention false
attention_chunk_size null
attention_dropout 0.1
attention_heads 32
dropout 0.1
embed_dim 2048
ffn_dim 8192
init_std 0.02
layer_norm_eps 1e-05
layer_types null
layerdrop 0.0
layers 24
max_position_embeddings 2048
pad_token_id 1
scale_embedding true
sliding_window null
tie_word_embeddings true
vocab_size 65037
)"},
{"kosmos_2_vision_model", R"(attention_chunk_size null
attention_dropout 0.0
hidden_act "quick_gelu"
hidden_size 1024
image_size 224
initializer_factor 1.0
initializer_range 0.02
intermediate_size 4096
layer_norm_eps 1e-05
layer_types null
num_attention_heads 16
num_channels 3
num_hidden_layers 24
patch_size 14
sliding_window null
)"},
{"laguna", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
gating true
head_dim 128
hidden_act "silu"
hidden_size 2048
!ignore_keys_at_rope_validation
initializer_range 0.02
intermediate_size 8192
layer_types ["full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention"]
max_position_embeddings 131072
mlp_layer_types ["dense","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse"]
moe_apply_router_weight_on_input false
moe_intermediate_size 512
moe_routed_scaling_factor 1.0
moe_router_logit_softcapping 0.0
num_attention_heads 48
num_attention_heads_per_layer [48,48,48,48,48,48,48,48,48,48,48,48,48,48,48,48,48,48,48,48,48,48,48,48,48,48,48,48,48,48,48,48,48,48,48,48,48,48,48,48]
num_experts 256
num_experts_per_tok 8
num_hidden_layers 40
num_key_value_heads 8
output_router_logits false
pad_token_id null
rms_norm_eps 1e-06
rope_parameters {"full_attention":{"rope_type":"default","rope_theta":500000.0,"partial_rotary_factor":0.5},"sliding_attention":{"rope_type":"default","rope_theta":10000.0,"partial_rotary_factor":1.0}}
router_aux_loss_coef 0.001
shared_expert_intermediate_size 512
sliding_window 512
tie_word_embeddings false
vocab_size 100352
)"},
{"lara_mini", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
head_dim 128
hidden_act "silu"
hidden_size 1024
initializer_range 0.02
layer_types ["linear_attention","sliding_attention","linear_attention","full_attention","sliding_attention","linear_attention","sliding_attention","linear_attention","full_attention","sliding_attention","linear_attention","sliding_attention","linear_attention","full_attention","sliding_attention","linear_attention","sliding_attention","linear_attention","full_attention","sliding_attention","linear_attention","sliding_attention","linear_attention","full_attention","sliding_attention","linear_attention","sliding_attention","linear_attention","full_attention","sliding_attention","linear_attention","sliding_attention","linear_attention","full_attention"]
linear_conv_kernel_dim 4
linear_key_head_dim 128
linear_num_key_heads 8
linear_num_value_heads 16
linear_value_head_dim 128
max_position_embeddings 131072
moe_intermediate_size 512
norm_topk_prob true
num_attention_heads 16
num_experts 128
num_experts_per_tok 4
num_hidden_layers 34
num_key_value_heads 4
output_router_logits false
pad_token_id null
rms_norm_eps 1e-06
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
router_aux_loss_coef 0.001
shared_expert_intermediate_size 512
sliding_window 512
tie_word_embeddings true
vocab_size 151936
)"},
{"layoutlm", R"(attention_chunk_size null
attention_probs_dropout_prob 0.1
hidden_act "gelu"
hidden_dropout_prob 0.1
hidden_size 768
!initializer_range
intermediate_size 3072
layer_norm_eps 1e-12
layer_types null
max_2d_position_embeddings 1024
max_position_embeddings 512
num_attention_heads 12
num_hidden_layers 12
pad_token_id 0
sliding_window null
tie_word_embeddings true
type_vocab_size 2
vocab_size 30522
)"},
{"layoutlmv2", R"(attention_chunk_size null
attention_probs_dropout_prob 0.1
!convert_sync_batchnorm
coordinate_size 128
detectron2_config_args {"MODEL.MASK_ON":true,"MODEL.PIXEL_STD":[57.375,57.12,58.395],"MODEL.BACKBONE.NAME":"build_resnet_fpn_backbone","MODEL.FPN.IN_FEATURES":["res2","res3","res4","res5"],"MODEL.ANCHOR_GENERATOR.SIZES":[[32],[64],[128],[256],[512]],"MODEL.RPN.IN_FEATURES":["p2","p3","p4","p5","p6"],"MODEL.RPN.PRE_NMS_TOPK_TRAIN":2000,"MODEL.RPN.PRE_NMS_TOPK_TEST":1000,"MODEL.RPN.POST_NMS_TOPK_TRAIN":1000,"MODEL.POST_NMS_TOPK_TEST":1000,"MODEL.ROI_HEADS.NAME":"StandardROIHeads","MODEL.ROI_HEADS.NUM_CLASSES":5,"MODEL.ROI_HEADS.IN_FEATURES":["p2","p3","p4","p5"],"MODEL.ROI_BOX_HEAD.NAME":"FastRCNNConvFCHead","MODEL.ROI_BOX_HEAD.NUM_FC":2,"MODEL.ROI_BOX_HEAD.POOLER_RESOLUTION":14,"MODEL.ROI_MASK_HEAD.NAME":"MaskRCNNConvUpsampleHead","MODEL.ROI_MASK_HEAD.NUM_CONV":4,"MODEL.ROI_MASK_HEAD.POOLER_RESOLUTION":7,"MODEL.RESNETS.DEPTH":101,"MODEL.RESNETS.SIZES":[[32],[64],[128],[256],[512]],"MODEL.RESNETS.ASPECT_RATIOS":[[0.5,1.0,2.0]],"MODEL.RESNETS.OUT_FEATURES":["res2","res3","res4","res5"],"MODEL.RESNETS.NUM_GROUPS":32,"MODEL.RESNETS.WIDTH_PER_GROUP":8,"MODEL.RESNETS.STRIDE_IN_1X1":false}
fast_qkv true
has_relative_attention_bias true
has_spatial_attention_bias true
has_visual_segment_embedding false
hidden_act "gelu"
hidden_dropout_prob 0.1
hidden_size 768
image_feature_pool_shape [7,7,256]
initializer_range 0.02
intermediate_size 3072
layer_norm_eps 1e-12
layer_types null
max_2d_position_embeddings 1024
max_position_embeddings 512
max_rel_2d_pos 256
max_rel_pos 128
num_attention_heads 12
num_hidden_layers 12
pad_token_id 0
rel_2d_pos_bins 64
rel_pos_bins 32
shape_size 128
sliding_window null
type_vocab_size 2
vocab_size 30522
)"},
{"layoutlmv3", R"(attention_chunk_size null
attention_probs_dropout_prob 0.1
classifier_dropout null
coordinate_size 128
has_relative_attention_bias true
has_spatial_attention_bias true
hidden_act "gelu"
hidden_dropout_prob 0.1
hidden_size 768
!initializer_range
input_size 224
intermediate_size 3072
layer_norm_eps 1e-05
layer_types null
max_2d_position_embeddings 1024
max_position_embeddings 512
max_rel_2d_pos 256
max_rel_pos 128
num_attention_heads 12
num_channels 3
num_hidden_layers 12
pad_token_id 1
patch_size 16
rel_2d_pos_bins 64
rel_pos_bins 32
shape_size 128
sliding_window null
text_embed true
type_vocab_size 2
visual_embed true
vocab_size 50265
)"},
{"led", R"(=attention_probs_dropout_prob attention_dropout
=hidden_size d_model
=initializer_range init_std
=num_attention_heads encoder_attention_heads
=num_hidden_layers encoder_layers
activation_dropout 0.0
activation_function "gelu"
attention_chunk_size null
attention_dropout 0.0
attention_window 512
classifier_dropout 0.0
d_model 1024
decoder_attention_heads 16
decoder_ffn_dim 4096
decoder_layerdrop 0.0
decoder_layers 12
decoder_start_token_id 2
dropout 0.1
encoder_attention_heads 16
encoder_ffn_dim 4096
encoder_layerdrop 0.0
encoder_layers 12
!init_std
layer_types null
max_decoder_position_embeddings 1024
max_encoder_position_embeddings 16384
pad_token_id 1
sliding_window null
tie_word_embeddings true
vocab_size 50265
)"},
{"levit", R"(attention_chunk_size null
attention_ratio [2,2,2]
depths [4,4,4]
down_ops [["Subsample",16,8,4,2,2],["Subsample",16,16,4,2,2]]
drop_path_rate 0
hidden_sizes [128,256,384]
image_size 224
!initializer_range
kernel_size 3
key_dim [16,16,16]
layer_types null
mlp_ratio [2,2,2]
num_attention_heads [4,8,12]
num_channels 3
padding 1
patch_size 16
sliding_window null
stride 2
)"},
{"lfm2", R"(attention_chunk_size null
block_auto_adjust_ff_dim true
block_ff_dim null
block_ffn_dim_multiplier 1.0
block_multiple_of 256
conv_L_cache 3
conv_bias false
full_attn_idxs [0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31]
hidden_size 2560
!initializer_range
intermediate_size 12288
layer_types ["full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention"]
max_position_embeddings 128000
norm_eps 1e-05
num_attention_heads 32
num_hidden_layers 32
num_key_value_heads 8
pad_token_id 0
rope_parameters {"rope_theta":1000000.0,"rope_type":"default"}
sliding_window null
tie_embedding null
tie_word_embeddings true
vocab_size 65536
)"},
{"lfm2_moe", R"(attention_chunk_size null
conv_L_cache 3
conv_bias false
hidden_size 2048
initializer_range 0.02
intermediate_size 7168
layer_types null
max_position_embeddings 128000
moe_intermediate_size 1792
norm_eps 1e-05
norm_topk_prob true
num_attention_heads 32
num_dense_layers 2
num_experts 32
num_experts_per_tok 4
num_hidden_layers 32
num_key_value_heads 8
!output_router_logits
pad_token_id 0
rope_parameters {"rope_theta":1000000.0,"rope_type":"default"}
routed_scaling_factor 1.0
sliding_window null
tie_embedding null
tie_word_embeddings true
use_expert_bias true
vocab_size 65536
)"},
{"lfm2_vl", R"(attention_chunk_size null
downsample_factor 2
image_token_id 396
layer_types null
projector_bias true
projector_hidden_act "gelu"
projector_hidden_size 2560
projector_use_layernorm true
sliding_window null
tie_embedding null
tie_word_embeddings true
)"},
{"lfm3", R"(=rms_norm_eps norm_eps
attention_bias false
attention_chunk_size null
attention_dropout 0.0
conv_L_cache 7
conv_bias false
head_dim 128
hidden_size 2048
!initializer_range
intermediate_size 7680
layer_types ["conv","conv","full_attention","conv","sliding_attention","conv","full_attention","conv","sliding_attention","conv","full_attention","conv","sliding_attention","conv","full_attention","conv","sliding_attention","conv","full_attention","conv","sliding_attention","conv","full_attention","conv"]
max_position_embeddings 128000
norm_eps 1e-05
num_attention_heads 16
num_hidden_layers 24
num_key_value_heads 4
pad_token_id 124893
rope_parameters {"sliding_attention":{"rope_type":"default","rope_theta":10000.0},"full_attention":{"rope_type":"proportional","rope_theta":1000000.0,"partial_rotary_factor":0.5}}
sliding_window 256
tie_word_embeddings true
use_attention_gate true
use_sandwich_norm true
vocab_size 128000
)"},
{"lfm3_vl", R"(attention_chunk_size null
image_token_id 125030
layer_types null
projector_bias true
projector_hidden_act "gelu"
projector_hidden_size 4096
sliding_window null
tie_word_embeddings true
video_token_id 125029
!vision_end_token_id
!vision_start_token_id
)"},
{"lfm3_vl_vision", R"(attention_chunk_size null
conv_kernel_size 3
hidden_size 1024
in_channels 3
!initializer_range
intermediate_size 2560
layer_types ["conv","conv","full_attention","conv","full_attention","conv","full_attention","conv","full_attention","conv","full_attention","conv","full_attention","conv"]
norm_eps 1e-05
num_attention_heads 16
num_hidden_layers 14
num_key_value_heads 8
patch_size 16
rope_parameters {"rope_theta":1000000.0,"rope_type":"axial"}
sliding_window null
spatial_merge_size 2
temporal_patch_size 2
)"},
{"lighton_ocr", R"(attention_chunk_size null
image_token_id 151655
layer_types null
sliding_window null
spatial_merge_size 2
tie_word_embeddings true
)"},
{"lilt", R"(attention_chunk_size null
attention_probs_dropout_prob 0.1
channel_shrink_ratio 4
classifier_dropout null
hidden_act "gelu"
hidden_dropout_prob 0.1
hidden_size 768
!initializer_range
intermediate_size 3072
layer_norm_eps 1e-12
layer_types null
max_2d_position_embeddings 1024
max_position_embeddings 512
num_attention_heads 12
num_hidden_layers 12
pad_token_id 0
sliding_window null
type_vocab_size 2
vocab_size 30522
)"},
{"llama", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
head_dim 128
hidden_act "silu"
hidden_size 4096
!initializer_range
intermediate_size 11008
layer_types null
max_position_embeddings 2048
mlp_bias false
num_attention_heads 32
num_hidden_layers 32
num_key_value_heads 32
pad_token_id null
!pretraining_tp
rms_norm_eps 1e-06
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
sliding_window null
tie_word_embeddings false
vocab_size 32000
)"},
{"llama4", R"(=boi_token_id boi_token_index
=eoi_token_id eoi_token_index
=image_token_id image_token_index
attention_chunk_size null
!boi_token_index
!eoi_token_index
image_token_index 200092
layer_types null
sliding_window null
tie_word_embeddings false
)"},
{"llama4_text", R"(attention_bias false
attention_chunk_size 8192
attention_dropout 0.0
attn_scale 0.1
attn_temperature_tuning true
floor_scale 8192
head_dim 128
hidden_act "silu"
hidden_size 5120
initializer_range 0.02
interleave_moe_layer_step 1
intermediate_size 8192
intermediate_size_mlp 16384
layer_types ["chunked_attention","chunked_attention","chunked_attention","full_attention","chunked_attention","chunked_attention","chunked_attention","full_attention","chunked_attention","chunked_attention","chunked_attention","full_attention","chunked_attention","chunked_attention","chunked_attention","full_attention","chunked_attention","chunked_attention","chunked_attention","full_attention","chunked_attention","chunked_attention","chunked_attention","full_attention","chunked_attention","chunked_attention","chunked_attention","full_attention","chunked_attention","chunked_attention","chunked_attention","full_attention","chunked_attention","chunked_attention","chunked_attention","full_attention","chunked_attention","chunked_attention","chunked_attention","full_attention","chunked_attention","chunked_attention","chunked_attention","full_attention","chunked_attention","chunked_attention","chunked_attention","full_attention"]
max_position_embeddings 131072
moe_layers [0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34,35,36,37,38,39,40,41,42,43,44,45,46,47]
no_rope_layer_interval 4
no_rope_layers [1,1,1,0,1,1,1,0,1,1,1,0,1,1,1,0,1,1,1,0,1,1,1,0,1,1,1,0,1,1,1,0,1,1,1,0,1,1,1,0,1,1,1,0,1,1,1,0]
num_attention_heads 40
num_experts_per_tok 1
num_hidden_layers 48
num_key_value_heads 8
num_local_experts 16
!output_router_logits
pad_token_id null
rms_norm_eps 1e-05
rope_parameters {"rope_theta":500000.0,"rope_type":"default"}
!router_aux_loss_coef
!router_jitter_noise
sliding_window null
tie_word_embeddings false
use_qk_norm true
vocab_size 202048
)"},
{"llama4_vision_model", R"(attention_chunk_size null
attention_dropout 0.0
hidden_act "gelu"
hidden_size 768
image_size 448
initializer_range 0.02
intermediate_size 5632
layer_types null
!multi_modal_projector_bias
!norm_eps
num_attention_heads 16
num_channels 3
num_hidden_layers 34
patch_size 14
pixel_shuffle_ratio 0.5
projector_dropout 0.0
projector_input_dim 4096
projector_output_dim 4096
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
sliding_window null
!vision_feature_select_strategy
!vision_output_dim
)"},
{"llava", R"(=image_token_id image_token_index
attention_chunk_size null
!image_seq_length
image_token_index 32000
layer_types null
multimodal_projector_bias true
projector_hidden_act "gelu"
sliding_window null
tie_word_embeddings false
vision_feature_layer -2
!vision_feature_select_strategy
)"},
{"llava_next", R"(=image_token_id image_token_index
attention_chunk_size null
image_grid_pinpoints [[336,672],[672,336],[672,672],[1008,336],[336,1008]]
!image_seq_length
image_token_index 32000
layer_types null
multimodal_projector_bias true
projector_hidden_act "gelu"
sliding_window null
tie_word_embeddings false
vision_feature_layer -2
!vision_feature_select_strategy
)"},
{"llava_next_video", R"(=image_token_id image_token_index
=video_token_id video_token_index
attention_chunk_size null
image_grid_pinpoints [[336,672],[672,336],[672,672],[1008,336],[336,1008]]
!image_seq_length
image_token_index 32001
layer_types null
multimodal_projector_bias true
projector_hidden_act "gelu"
sliding_window null
spatial_pool_mode "average"
spatial_pool_stride 2
tie_word_embeddings false
!video_seq_length
video_token_index 32000
vision_feature_layer -2
!vision_feature_select_strategy
)"},
{"llava_onevision", R"(=image_token_id image_token_index
=video_token_id video_token_index
attention_chunk_size null
image_grid_pinpoints [[384,384],[384,768],[384,1152],[384,1536],[384,1920],[384,2304],[768,384],[768,768],[768,1152],[768,1536],[768,1920],[768,2304],[1152,384],[1152,768],[1152,1152],[1152,1536],[1152,1920],[1152,2304],[1536,384],[1536,768],[1536,1152],[1536,1536],[1536,1920],[1536,2304],[1920,384],[1920,768],[1920,1152],[1920,1536],[1920,1920],[1920,2304],[2304,384],[2304,768],[2304,1152],[2304,1536],[2304,1920],[2304,2304]]
image_token_index 151646
layer_types null
multimodal_projector_bias true
projector_hidden_act "gelu"
sliding_window null
tie_word_embeddings false
video_token_index 151647
!vision_aspect_ratio
vision_feature_layer -1
!vision_feature_select_strategy
)"},
{"longcat_flash", R"(=intermediate_size ffn_hidden_size
=moe_intermediate_size expert_ffn_hidden_size
=num_experts_per_tok moe_topk
=num_local_experts n_routed_experts
attention_bias false
attention_chunk_size null
attention_dropout 0.0
expert_ffn_hidden_size 2048
ffn_hidden_size 12288
head_dim 64
hidden_act "silu"
hidden_size 6144
initializer_range 0.02
kv_lora_rank 512
layer_types null
max_position_embeddings 131072
moe_topk 12
n_routed_experts 512
num_attention_heads 64
num_key_value_heads 64
num_layers 28
!output_router_logits
pad_token_id null
q_lora_rank 1536
qk_head_dim 192
qk_nope_head_dim 128
qk_rope_head_dim 64
rms_norm_eps 1e-05
rope_parameters {"rope_theta":10000000.0,"rope_type":"default"}
routed_scaling_factor 6.0
sliding_window null
tie_word_embeddings false
v_head_dim 128
vocab_size 131072
zero_expert_num 256
)"},
{"longformer", R"(attention_chunk_size null
attention_probs_dropout_prob 0.1
attention_window 512
hidden_act "gelu"
hidden_dropout_prob 0.1
hidden_size 768
!initializer_range
intermediate_size 3072
layer_norm_eps 1e-12
layer_types null
max_position_embeddings 512
num_attention_heads 12
num_hidden_layers 12
onnx_export false
pad_token_id 1
sep_token_id 2
sliding_window null
tie_word_embeddings true
type_vocab_size 2
vocab_size 30522
)"},
{"longt5", R"(=head_dim d_kv
=hidden_size d_model
=num_attention_heads num_heads
=num_hidden_layers num_layers
attention_chunk_size null
d_ff 2048
d_kv 64
d_model 512
dense_act_fn "relu"
dropout_rate 0.1
encoder_attention_type "local"
feed_forward_proj "relu"
global_block_size 16
initializer_factor 1.0
is_decoder false
is_gated_act false
layer_norm_epsilon 1e-06
layer_types null
local_radius 127
num_decoder_layers 6
num_heads 8
num_layers 6
pad_token_id 0
relative_attention_max_distance 128
relative_attention_num_buckets 32
scale_decoder_outputs true
sliding_window null
tie_word_embeddings true
vocab_size 32128
)"},
{"luke", R"(attention_chunk_size null
attention_probs_dropout_prob 0.1
classifier_dropout null
entity_emb_size 256
entity_vocab_size 500000
hidden_act "gelu"
hidden_dropout_prob 0.1
hidden_size 768
initializer_range 0.02
intermediate_size 3072
layer_norm_eps 1e-12
layer_types null
max_position_embeddings 512
num_attention_heads 12
num_hidden_layers 12
pad_token_id 1
sliding_window null
tie_word_embeddings true
type_vocab_size 2
use_entity_aware_attention true
vocab_size 50267
)"},
{"lw_detr_vit", R"(attention_chunk_size null
cae_init_values 0.1
dropout_prob 0.0
hidden_act "gelu"
hidden_size 768
image_size 256
initializer_range 0.02
layer_norm_eps 1e-06
layer_types null
mask_loss_coefficient null
mlp_ratio 4
num_attention_heads 12
num_channels 3
num_hidden_layers 12
num_windows 16
num_windows_side 4
out_features ["stage12"]
out_indices [12]
patch_size 16
pretrain_image_size 224
qkv_bias true
sliding_window null
!stage_names
use_absolute_position_embeddings true
window_block_indices []
)"},
{"m2m_100", R"(=hidden_size d_model
=num_attention_heads encoder_attention_heads
=num_hidden_layers encoder_layers
activation_dropout 0.0
activation_function "relu"
attention_chunk_size null
attention_dropout 0.1
d_model 1024
decoder_attention_heads 16
decoder_ffn_dim 4096
decoder_layerdrop 0.05
decoder_layers 12
decoder_start_token_id 2
dropout 0.1
encoder_attention_heads 16
encoder_ffn_dim 4096
encoder_layerdrop 0.05
encoder_layers 12
!init_std
layer_types null
max_position_embeddings 1024
pad_token_id 1
scale_embedding true
sliding_window null
tie_word_embeddings true
vocab_size 128112
)"},
{"mamba", R"(attention_chunk_size null
conv_kernel 4
expand 2
hidden_act "silu"
hidden_size 768
!initializer_range
intermediate_size 1536
layer_norm_epsilon 1e-05
layer_types null
num_hidden_layers 32
pad_token_id 0
rescale_prenorm_residual false
residual_in_fp32 true
sliding_window null
state_size 16
tie_word_embeddings true
time_step_floor 0.0001
time_step_init_scheme "random"
time_step_max 0.1
time_step_min 0.001
time_step_rank 48
time_step_scale 1.0
use_associative_scan true
use_bias false
use_conv_bias true
use_mambapy false
vocab_size 50280
)"},
{"mamba2", R"(attention_chunk_size null
chunk_size 256
conv_kernel 4
expand 2
head_dim 64
hidden_act "silu"
hidden_size 4096
!initializer_range
layer_norm_epsilon 1e-05
layer_types null
n_groups 8
num_heads 128
num_hidden_layers 64
pad_token_id 1
rescale_prenorm_residual false
residual_in_fp32 true
sliding_window null
state_size 128
tie_word_embeddings false
time_step_floor 0.0001
time_step_limit [0.0,Infinity]
time_step_max 0.1
time_step_min 0.001
time_step_rank 256
use_bias false
use_conv_bias true
vocab_size 32768
)"},
{"marian", R"(=hidden_size d_model
=num_attention_heads encoder_attention_heads
=num_hidden_layers encoder_layers
activation_dropout 0.0
activation_function "gelu"
attention_chunk_size null
attention_dropout 0.0
d_model 1024
decoder_attention_heads 16
decoder_ffn_dim 4096
decoder_layerdrop 0.0
decoder_layers 12
decoder_start_token_id 58100
decoder_vocab_size 58101
dropout 0.1
encoder_attention_heads 16
encoder_ffn_dim 4096
encoder_layerdrop 0.0
encoder_layers 12
!forced_eos_token_id
!init_std
is_decoder false
layer_types null
max_position_embeddings 1024
pad_token_id 58100
scale_embedding false
share_encoder_decoder_embeddings true
sliding_window null
tie_word_embeddings true
vocab_size 58101
)"},
{"markuplm", R"(attention_chunk_size null
attention_probs_dropout_prob 0.1
classifier_dropout null
hidden_act "gelu"
hidden_dropout_prob 0.1
hidden_size 768
!initializer_range
intermediate_size 3072
layer_norm_eps 1e-12
layer_types null
max_depth 50
max_position_embeddings 512
max_xpath_subs_unit_embeddings 1024
max_xpath_tag_unit_embeddings 256
num_attention_heads 12
num_hidden_layers 12
pad_token_id 0
sliding_window null
subs_pad_id 1001
tag_pad_id 216
type_vocab_size 2
vocab_size 30522
xpath_unit_hidden_size 32
)"},
{"maskformer-swin", R"(=num_attention_heads num_heads
=num_hidden_layers num_layers
attention_chunk_size null
attention_probs_dropout_prob 0.0
depths [2,2,6,2]
drop_path_rate 0.1
embed_dim 96
hidden_act "gelu"
hidden_dropout_prob 0.0
hidden_size 768
image_size 224
!initializer_range
layer_norm_eps 1e-05
layer_types null
mlp_ratio 4.0
num_channels 3
num_heads [3,6,12,24]
out_features ["stage4"]
out_indices [4]
patch_size 4
qkv_bias true
sliding_window null
!stage_names
use_absolute_embeddings false
window_size 7
)"},
{"mbart", R"(=hidden_size d_model
=num_attention_heads encoder_attention_heads
=num_hidden_layers encoder_layers
activation_dropout 0.0
activation_function "gelu"
attention_chunk_size null
attention_dropout 0.0
classifier_dropout 0.0
d_model 1024
decoder_attention_heads 16
decoder_ffn_dim 4096
decoder_layerdrop 0.0
decoder_layers 12
!decoder_start_token_id
dropout 0.1
encoder_attention_heads 16
encoder_ffn_dim 4096
encoder_layerdrop 0.0
encoder_layers 12
!forced_eos_token_id
!init_std
is_decoder false
layer_types null
max_position_embeddings 1024
pad_token_id 1
scale_embedding false
sliding_window null
tie_word_embeddings true
vocab_size 50265
)"},
{"megatron-bert", R"(add_cross_attention false
attention_chunk_size null
attention_probs_dropout_prob 0.1
hidden_act "gelu"
hidden_dropout_prob 0.1
hidden_size 1024
!initializer_range
intermediate_size 4096
is_decoder false
layer_norm_eps 1e-12
layer_types null
max_position_embeddings 512
num_attention_heads 16
num_hidden_layers 24
pad_token_id 0
sliding_window null
tie_word_embeddings true
type_vocab_size 2
vocab_size 29056
)"},
{"mellum", R"(=num_experts num_local_experts
=num_mtp_layers num_nextn_predict_layers
attention_bias false
attention_chunk_size null
attention_dropout 0.0
head_dim 128
hidden_act "silu"
hidden_size 2304
!ignore_keys_at_rope_validation
initializer_range 0.02
intermediate_size 7168
layer_types ["full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention"]
max_position_embeddings 131072
mlp_layer_types ["sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse"]
moe_intermediate_size 896
mtp_layer_types null
mtp_mlp_layer_types null
norm_topk_prob true
num_attention_heads 32
num_experts_per_tok 8
num_hidden_layers 28
num_key_value_heads 4
num_local_experts 64
num_nextn_predict_layers null
output_router_logits false
pad_token_id null
rms_norm_eps 1e-06
rope_parameters {"full_attention":{"rope_type":"default","rope_theta":500000.0},"sliding_attention":{"rope_type":"default","rope_theta":10000.0}}
router_aux_loss_coef 0.001
sliding_window 1024
tie_word_embeddings false
vocab_size 98304
)"},
{"metaclip_2", R"(attention_chunk_size null
initializer_factor 1.0
layer_types null
logit_scale_init_value 2.6592
projection_dim 512
sliding_window null
text_config_dict null
vision_config_dict null
)"},
{"metaclip_2_text_model", R"(attention_chunk_size null
attention_dropout 0.0
hidden_act "quick_gelu"
hidden_size 512
initializer_factor 1.0
initializer_range 0.02
intermediate_size 2048
layer_norm_eps 1e-05
layer_types null
max_position_embeddings 77
num_attention_heads 8
num_hidden_layers 12
pad_token_id 1
projection_dim 512
sliding_window null
text_config_dict null
vision_config_dict null
vocab_size 49408
)"},
{"metaclip_2_vision_model", R"(attention_chunk_size null
attention_dropout 0.0
hidden_act "quick_gelu"
hidden_size 768
image_size 224
initializer_factor 1.0
initializer_range 0.02
intermediate_size 3072
layer_norm_eps 1e-05
layer_types null
num_attention_heads 12
num_channels 3
num_hidden_layers 12
patch_size 32
projection_dim 512
sliding_window null
text_config_dict null
vision_config_dict null
)"},
{"mimo_v2_flash", R"(=num_local_experts n_routed_experts
attention_bias false
attention_chunk_size null
attention_dropout 0.0
attention_value_scale 0.707
head_dim 192
hidden_act "silu"
hidden_size 4096
initializer_range 0.02
intermediate_size 16384
layer_types ["full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention"]
max_position_embeddings 131072
mlp_layer_types ["dense","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse"]
moe_intermediate_size 2048
n_group 1
n_routed_experts 256
norm_topk_prob true
num_attention_heads 64
num_experts_per_tok 8
num_hidden_layers 48
num_key_value_heads 4
!output_router_logits
pad_token_id null
rms_norm_eps 1e-05
rope_parameters {"full_attention":{"rope_type":"default","rope_theta":5000000.0,"partial_rotary_factor":0.334},"sliding_attention":{"rope_type":"default","rope_theta":10000.0,"partial_rotary_factor":0.334}}
routed_scaling_factor 1.0
sliding_window 129
sliding_window_size null
tie_word_embeddings false
topk_group 1
v_head_dim 128
vocab_size 152576
)"},
{"minicpm3", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
dim_model_base 256
head_dim 32
hidden_act "silu"
hidden_size 2560
!initializer_range
intermediate_size 6400
kv_lora_rank 256
layer_types null
max_position_embeddings 32768
mlp_bias false
num_attention_heads 40
num_hidden_layers 62
num_key_value_heads 40
pad_token_id null
!pretraining_tp
q_lora_rank 768
!qk_head_dim
qk_nope_head_dim 64
qk_rope_head_dim 32
rms_norm_eps 1e-05
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
scale_depth 1.4
scale_emb 12
sliding_window null
tie_word_embeddings true
v_head_dim 64
vocab_size 73448
)"},
{"minicpm_ocr", R"(attention_chunk_size null
downsample_mode "4x"
image_token_id null
insert_layer_id 6
layer_types null
merge_kernel_size [2,2]
merger_times 1
patch_size 16
sliding_window null
tie_word_embeddings true
video_token_id null
)"},
{"minicpm_ocr_vision", R"(attention_chunk_size null
attention_dropout 0.0
hidden_act "gelu_pytorch_tanh"
hidden_size 768
image_size 224
insert_layer_id 6
intermediate_size 3072
layer_norm_eps 1e-06
layer_types null
num_attention_heads 12
num_channels 3
num_hidden_layers 12
patch_size 16
sliding_window null
window_kernel_size [2,2]
)"},
{"minicpmv4_6", R"(attention_chunk_size null
downsample_mode "16x"
!drop_vision_last_layer
image_size 448
image_token_id null
insert_layer_id 6
layer_types null
merge_kernel_size [2,2]
merger_times 1
patch_size 16
sliding_window null
tie_word_embeddings false
video_token_id null
)"},
{"minicpmv4_6_vision", R"(attention_chunk_size null
attention_dropout 0.0
hidden_act "gelu_pytorch_tanh"
hidden_size 768
image_size 224
insert_layer_id 6
intermediate_size 3072
layer_norm_eps 1e-06
layer_types null
num_attention_heads 12
num_channels 3
num_hidden_layers 12
patch_size 16
sliding_window null
window_kernel_size [2,2]
)"},
{"minicpmv4_7", R"(attention_chunk_size null
downsample_mode "16x"
image_end_id null
image_size 448
image_start_id null
image_token_id null
insert_layer_id 6
layer_types null
merge_kernel_size [2,2]
merger_times 1
newline_id null
patch_size 16
slice_end_id null
slice_start_id null
sliding_window null
tie_word_embeddings false
video_token_id null
)"},
{"minicpmv4_7_vision", R"(attention_chunk_size null
attention_dropout 0.0
hidden_act "gelu_pytorch_tanh"
hidden_size 768
image_size 224
insert_layer_id 6
intermediate_size 3072
layer_norm_eps 1e-06
layer_types null
num_attention_heads 12
num_channels 3
num_hidden_layers 12
patch_size 16
sliding_window null
window_kernel_size [2,2]
)"},
{"minimax", R"(=num_experts num_local_experts
attention_chunk_size null
attention_dropout 0.0
block_size 256
full_attn_alpha_factor 1
full_attn_beta_factor 1
head_dim null
hidden_act "silu"
hidden_size 4096
initializer_range 0.02
intermediate_size 14336
layer_types ["full_attention","linear_attention","full_attention","linear_attention","full_attention","linear_attention","full_attention","linear_attention","full_attention","linear_attention","full_attention","linear_attention","full_attention","linear_attention","full_attention","linear_attention","full_attention","linear_attention","full_attention","linear_attention","full_attention","linear_attention","full_attention","linear_attention","full_attention","linear_attention","full_attention","linear_attention","full_attention","linear_attention","full_attention","linear_attention"]
linear_attn_alpha_factor 1
linear_attn_beta_factor 1
max_position_embeddings 131072
mlp_alpha_factor 1
mlp_beta_factor 1
num_attention_heads 32
num_experts_per_tok 2
num_hidden_layers 32
num_key_value_heads 8
num_local_experts 8
output_router_logits false
pad_token_id null
rms_norm_eps 1e-05
rope_parameters {"rope_theta":1000000.0,"rope_type":"default"}
router_aux_loss_coef 0.001
router_jitter_noise 0.0
sliding_window null
tie_word_embeddings false
vocab_size 32000
)"},
{"minimax_m2", R"(=num_experts num_local_experts
attention_chunk_size null
attention_dropout 0.0
head_dim 128
hidden_act "silu"
hidden_size 3072
initializer_range 0.02
intermediate_size 1536
layer_types null
max_position_embeddings 196608
num_attention_heads 48
num_experts_per_tok 8
num_hidden_layers 62
num_key_value_heads 8
num_local_experts 256
output_router_logits false
pad_token_id null
rms_norm_eps 1e-06
rope_parameters {"rope_theta":5000000.0,"rope_type":"default"}
rotary_dim null
router_aux_loss_coef 0.001
router_jitter_noise 0.0
sliding_window null
tie_word_embeddings false
vocab_size 200064
)"},
{"minimax_m3_vl", R"(=image_token_id image_token_index
=video_token_id video_token_index
attention_chunk_size null
image_token_index 200025
layer_types null
merged_hidden_size 24576
moe_layer_freq null
projector_hidden_size 6144
sliding_window null
sparse_attention_config null
tie_word_embeddings false
video_token_index 200026
)"},
{"minimax_m3_vl_text", R"(=num_experts num_local_experts
attention_chunk_size null
attention_dropout 0.0
dense_intermediate_size 12288
head_dim 128
hidden_act "silu"
hidden_size 6144
index_block_size 128
index_head_dim 128
index_local_blocks 1
index_n_heads 4
index_topk_blocks 16
initializer_range 0.02
intermediate_size 3072
layer_types ["full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention"]
max_position_embeddings 524288
mlp_layer_types ["sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse"]
moe_layer_freq null
num_attention_heads 64
num_experts_per_tok 4
num_hidden_layers 60
num_key_value_heads 4
num_local_experts 128
output_router_logits false
pad_token_id null
rms_norm_eps 1e-06
rope_parameters {"rope_theta":5000000.0,"rope_type":"default"}
!rotary_dim
routed_scaling_factor 2.0
router_aux_loss_coef 0.001
!router_jitter_noise
shared_intermediate_size 3072
sliding_window null
sparse_attention_config null
swiglu_alpha 1.702
swiglu_limit 7.0
tie_word_embeddings false
vocab_size 200064
)"},
{"minimax_m3_vl_vision", R"(attention_chunk_size null
attention_dropout 0.0
hidden_act "gelu"
hidden_size 1280
!image_size
initializer_range 0.02
intermediate_size 5120
layer_norm_eps 1e-05
layer_types null
moe_layer_freq null
num_attention_heads 16
num_channels 3
num_hidden_layers 32
patch_size 14
rope_parameters {"rope_theta":10000.0,"rope_type":"axial"}
sliding_window null
sparse_attention_config null
spatial_merge_size 2
temporal_patch_size 2
)"},
{"ministral", R"(attention_chunk_size null
attention_dropout 0.0
head_dim null
hidden_act "silu"
hidden_size 4096
!initializer_range
intermediate_size 14336
layer_types ["sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention"]
max_position_embeddings 131072
num_attention_heads 32
num_hidden_layers 32
num_key_value_heads 8
pad_token_id null
rms_norm_eps 1e-06
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
sliding_window 4096
tie_word_embeddings false
vocab_size 32000
)"},
{"ministral3", R"(attention_chunk_size null
attention_dropout 0.0
head_dim 128
hidden_act "silu"
hidden_size 4096
!initializer_range
intermediate_size 14336
layer_types null
max_position_embeddings 262144
num_attention_heads 32
num_hidden_layers 34
num_key_value_heads 8
pad_token_id 11
rms_norm_eps 1e-05
rope_parameters {"type":"yarn","rope_theta":1000000.0,"factor":16.0,"original_max_position_embeddings":16384,"max_position_embeddings":262144,"beta_fast":32.0,"beta_slow":1.0,"mscale_all_dim":1.0,"mscale":1.0,"llama_4_scaling_beta":0.1,"rope_type":"yarn"}
sliding_window null
tie_word_embeddings false
vocab_size 131072
)"},
{"mistral", R"(attention_chunk_size null
attention_dropout 0.0
head_dim 128
hidden_act "silu"
hidden_size 4096
!initializer_range
intermediate_size 14336
layer_types null
max_position_embeddings 131072
num_attention_heads 32
num_hidden_layers 32
num_key_value_heads 8
pad_token_id null
rms_norm_eps 1e-06
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
sliding_window 4096
tie_word_embeddings false
vocab_size 32000
)"},
{"mistral3", R"(=image_token_id image_token_index
attention_chunk_size null
image_token_index 10
layer_types null
multimodal_projector_bias false
projector_hidden_act "gelu"
sliding_window null
spatial_merge_size 2
tie_word_embeddings true
vision_feature_layer -1
)"},
{"mistral4", R"(=num_local_experts n_routed_experts
attention_bias false
attention_chunk_size null
attention_dropout 0.0
first_k_dense_replace 0
head_dim 128
hidden_act "silu"
hidden_size 4096
!ignore_keys_at_rope_validation
initializer_range 0.02
intermediate_size 12288
kv_lora_rank 256
layer_types null
max_position_embeddings 1048576
moe_intermediate_size 2048
n_group 1
n_routed_experts 128
n_shared_experts 1
norm_topk_prob true
num_attention_heads 32
num_experts_per_tok 4
num_hidden_layers 36
num_key_value_heads 32
!output_router_logits
pad_token_id 11
!pretraining_tp
q_lora_rank 1024
!qk_head_dim
qk_nope_head_dim 64
qk_rope_head_dim 64
rms_norm_eps 1e-06
rope_interleave true
rope_parameters {"type":"yarn","rope_theta":10000.0,"factor":128.0,"original_max_position_embeddings":8192,"max_position_embeddings":1048576,"beta_fast":32.0,"beta_slow":1.0,"mscale_all_dim":1.0,"mscale":1.0,"llama_4_scaling_beta":0.1,"partial_rotary_factor":0.5,"rope_type":"yarn"}
routed_scaling_factor 1.0
sliding_window null
tie_word_embeddings false
topk_group 1
v_head_dim 128
vocab_size 131072
)"},
{"mistral_large4", R"(=image_token_id image_token_index
attention_chunk_size null
image_token_index 10
index_skip_topk_offset null
index_topk_freq null
index_topk_pattern null
layer_types null
multimodal_projector_bias false
no_rope_layer_interval null
num_experts null
projector_hidden_act "gelu"
sliding_window null
spatial_merge_size 2
tie_word_embeddings false
vision_feature_layer -1
)"},
{"mistral_large4_text", R"(=num_local_experts n_routed_experts
attention_bias false
attention_chunk_size null
attention_dropout 0.0
final_logit_softcapping 30.0
first_k_dense_replace 1
head_dim 64
hidden_act "silu"
hidden_size 6144
index_head_dim 128
index_n_heads 32
index_skip_topk_offset null
index_topk 2048
index_topk_freq null
index_topk_pattern null
indexer_types ["full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full","full"]
initializer_range 0.02
intermediate_size 24576
kv_lora_rank 512
kv_source_layers [0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34,35,36,37,38,39,40,41,42,43,44,45,46,47,48,49,50,51,52,53,54,55,56,57,58,59,60,61,62,63,64,65,66,67,68,69,70,71]
layer_types ["indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention","indexed_attention"]
max_position_embeddings 1048576
mlp_layer_types ["dense","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse"]
moe_intermediate_size 6144
n_group 1
n_routed_experts 128
n_shared_experts 1
no_rope_layer_interval null
no_rope_layers [1,1,1,0,1,1,1,0,1,1,1,0,1,1,1,0,1,1,1,0,1,1,1,0,1,1,1,0,1,1,1,0,1,1,1,0,1,1,1,0,1,1,1,0,1,1,1,0,1,1,1,0,1,1,1,0,1,1,1,0,1,1,1,0,1,1,1,0,1,1,1,0]
num_attention_heads 64
num_experts null
num_experts_per_tok 4
num_hidden_layers 72
num_key_value_heads 64
!output_router_logits
pad_token_id null
!qk_head_dim
qk_nope_head_dim 64
qk_rope_head_dim 64
rms_norm_eps 1e-05
rope_parameters {"rope_type":"yarn","rope_theta":10000.0,"factor":2048.0,"original_max_position_embeddings":512,"beta_fast":32.0,"beta_slow":1.0,"attention_factor":1.0}
routed_scaling_factor 1.0
sliding_window null
tie_word_embeddings false
topk_group 1
v_head_dim 128
vocab_size 204800
)"},
{"mixtral", R"(=num_experts num_local_experts
attention_chunk_size null
attention_dropout 0.0
head_dim null
hidden_act "silu"
hidden_size 4096
initializer_range 0.02
intermediate_size 14336
layer_types null
max_position_embeddings 131072
num_attention_heads 32
num_experts_per_tok 2
num_hidden_layers 32
num_key_value_heads 8
num_local_experts 8
output_router_logits false
pad_token_id null
rms_norm_eps 1e-05
rope_parameters {"rope_theta":1000000.0,"rope_type":"default"}
router_aux_loss_coef 0.001
router_jitter_noise 0.0
sliding_window null
tie_word_embeddings false
vocab_size 32000
)"},
{"mllama", R"(=image_token_id image_token_index
attention_chunk_size null
!image_token_index
layer_types null
sliding_window null
)"},
{"mllama_text_model", R"(attention_chunk_size null
cross_attention_layers [3,8,13,18,23,28,33,38]
dropout 0.0
hidden_act "silu"
hidden_size 4096
initializer_range 0.02
intermediate_size 14336
layer_types null
max_position_embeddings 131072
num_attention_heads 32
num_hidden_layers 40
num_key_value_heads 8
pad_token_id 128004
rms_norm_eps 1e-05
rope_parameters {"rope_theta":500000.0,"rope_type":"default"}
sliding_window null
tie_word_embeddings false
vocab_size 128256
)"},
{"mllama_vision_model", R"(=num_attention_heads attention_heads
attention_chunk_size null
attention_heads 16
hidden_act "gelu"
hidden_size 1280
image_size 448
initializer_range 0.02
intermediate_layers_indices [3,7,15,23,30]
intermediate_size 5120
layer_types null
max_num_tiles 4
norm_eps 1e-05
num_channels 3
num_global_layers 8
num_hidden_layers 32
patch_size 14
sliding_window null
supported_aspect_ratios [[1,1],[1,2],[1,3],[1,4],[2,1],[2,2],[3,1],[4,1]]
!vision_output_dim
)"},
{"mobilebert", R"(attention_chunk_size null
attention_probs_dropout_prob 0.1
classifier_activation true
classifier_dropout null
embedding_size 128
hidden_act "relu"
hidden_dropout_prob 0.0
hidden_size 512
!initializer_range
intermediate_size 512
intra_bottleneck_size 128
key_query_shared_bottleneck true
layer_norm_eps 1e-12
layer_types null
max_position_embeddings 512
normalization_type "no_norm"
num_attention_heads 4
num_feedforward_networks 4
num_hidden_layers 24
pad_token_id 0
sliding_window null
tie_word_embeddings true
trigram_input true
true_hidden_size 128
type_vocab_size 2
use_bottleneck true
use_bottleneck_attention false
vocab_size 30522
)"},
{"mobilenet_v1", R"(attention_chunk_size null
classifier_dropout_prob 0.999
depth_multiplier 1.0
hidden_act "relu6"
!image_size
!initializer_range
layer_norm_eps 0.001
layer_types null
min_depth 8
num_channels 3
sliding_window null
tf_padding true
)"},
{"mobilenet_v2", R"(attention_chunk_size null
classifier_dropout_prob 0.8
depth_divisible_by 8
depth_multiplier 1.0
expand_ratio 6.0
finegrained_output true
first_layer_is_expansion true
hidden_act "relu6"
!image_size
!initializer_range
layer_norm_eps 0.001
layer_types null
min_depth 8
num_channels 3
output_stride 32
semantic_loss_ignore_index 255
sliding_window null
tf_padding true
)"},
{"mobilevit", R"(aspp_dropout_prob 0.1
aspp_out_channels 256
atrous_rates [6,12,18]
attention_chunk_size null
attention_probs_dropout_prob 0.0
classifier_dropout_prob 0.1
conv_kernel_size 3
expand_ratio 4.0
hidden_act "silu"
hidden_dropout_prob 0.1
hidden_sizes [144,192,240]
!image_size
initializer_range 0.02
layer_norm_eps 1e-05
layer_types null
mlp_ratio 2.0
neck_hidden_sizes [16,32,64,96,128,160,640]
num_attention_heads 4
num_channels 3
output_stride 32
patch_size 2
qkv_bias true
semantic_loss_ignore_index 255
sliding_window null
)"},
{"mobilevitv2", R"(aspp_dropout_prob 0.1
aspp_out_channels 512
atrous_rates [6,12,18]
attention_chunk_size null
attn_dropout 0.0
base_attn_unit_dims [128,192,256]
classifier_dropout_prob 0.1
conv_kernel_size 3
expand_ratio 2.0
ffn_dropout 0.0
ffn_multiplier 2
hidden_act "swish"
!image_size
initializer_range 0.02
layer_norm_eps 1e-05
layer_types null
n_attn_blocks [2,4,3]
num_channels 3
output_stride 32
patch_size 2
semantic_loss_ignore_index 255
sliding_window null
width_multiplier 1.0
)"},
{"modernbert", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
classifier_activation "gelu"
classifier_bias false
classifier_dropout 0.0
classifier_pooling "cls"
!cls_token_id
decoder_bias true
deterministic_flash_attn false
embedding_dropout 0.0
global_attn_every_n_layers null
global_rope_theta null
hidden_activation "gelu"
hidden_size 768
initializer_cutoff_factor 2.0
initializer_range 0.02
intermediate_size 1152
layer_types ["full_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","full_attention"]
local_attention 128
local_rope_theta null
max_position_embeddings 8192
mlp_bias false
mlp_dropout 0.0
norm_bias false
norm_eps 1e-05
num_attention_heads 12
num_hidden_layers 22
pad_token_id 50283
rope_parameters {"sliding_attention":{"rope_type":"default","rope_theta":10000.0},"full_attention":{"rope_type":"default","rope_theta":160000.0}}
rope_scaling null
sep_token_id 50282
sliding_window null
sparse_pred_ignore_index -100
sparse_prediction false
tie_word_embeddings true
vocab_size 50368
)"},
{"modernbert-decoder", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
classifier_activation "gelu"
classifier_bias false
classifier_dropout 0.0
!cls_token_id
decoder_bias true
embedding_dropout 0.0
global_attn_every_n_layers null
global_rope_theta null
hidden_activation "gelu"
hidden_size 768
initializer_cutoff_factor 2.0
initializer_range 0.02
intermediate_size 1152
layer_types ["full_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","full_attention"]
local_attention 128
local_rope_theta null
max_position_embeddings 8192
mlp_bias false
mlp_dropout 0.0
norm_bias false
norm_eps 1e-05
num_attention_heads 12
num_hidden_layers 22
pad_token_id 50283
rope_parameters {"sliding_attention":{"rope_type":"default","rope_theta":10000.0},"full_attention":{"rope_type":"default","rope_theta":160000.0}}
rope_scaling null
sep_token_id 50282
sliding_window 64
tie_word_embeddings true
vocab_size 50368
)"},
{"modernvbert", R"(attention_chunk_size null
classifier_bias false
classifier_dropout 0.0
classifier_pooling "cls"
image_token_id 50407
initializer_cutoff_factor 2.0
initializer_range 0.02
layer_types null
pixel_shuffle_factor 4
sliding_window null
tie_word_embeddings false
)"},
{"molmo2", R"(=image_token_id image_patch_id
=video_token_id image_patch_id
attention_chunk_size null
!frame_end_token_id
!frame_start_token_id
image_default_input_size null
!image_end_token_id
image_num_pos null
image_patch_id 151938
image_patch_size null
!image_start_token_id
initializer_range 0.02
layer_types null
!low_res_image_start_token_id
sliding_window null
tie_word_embeddings false
vit_config null
vit_layers null
)"},
{"molmo2_adapter", R"(attention_bias true
attention_chunk_size null
attention_dropout 0.0
head_dim 72
hidden_act "silu"
hidden_size 1152
image_default_input_size null
image_num_pos null
image_patch_size null
initializer_range 0.02
intermediate_size 18944
layer_types null
mlp_bias false
num_attention_heads 16
num_key_value_heads 16
sliding_window null
text_hidden_size 3584
vision_feature_layer [24,18]
vit_config null
vit_layers null
)"},
{"molmo2_text", R"(=layer_norm_eps rms_norm_eps
=qkv_bias attention_bias
additional_vocab_size 128
attention_bias false
attention_chunk_size null
attention_dropout 0.0
head_dim 128
hidden_act "silu"
hidden_size 4096
image_default_input_size null
image_num_pos null
image_patch_size null
initializer_range 0.02
intermediate_size 12288
layer_types null
max_position_embeddings 36864
norm_after false
num_attention_heads 32
num_hidden_layers 36
num_key_value_heads 8
qk_norm_type "qwen3"
rms_norm_eps 1e-06
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
rope_scaling_layers [0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34,35]
sliding_window null
tie_word_embeddings false
vit_config null
vit_layers null
vocab_size 151936
)"},
{"molmo2_vision", R"(attention_bias true
attention_chunk_size null
attention_dropout 0.0
head_dim 72
hidden_act "gelu_pytorch_tanh"
hidden_size 1152
image_default_input_size null
image_num_pos null
image_patch_size null
image_size [378,378]
initializer_range 0.02
intermediate_size 4304
layer_norm_eps 1e-06
layer_types null
num_attention_heads 16
num_channels 3
num_hidden_layers 25
num_key_value_heads 16
num_position_embeddings 729
patch_size 14
sliding_window null
vit_config null
vit_layers null
)"},
{"moshi", R"(attention_chunk_size null
attention_dropout 0.0
audio_vocab_size null
ffn_dim 22528
head_dim 128
hidden_act "silu"
hidden_size 4096
!initializer_range
layer_types null
max_position_embeddings 3000
num_attention_heads 32
num_codebooks 8
num_hidden_layers 32
num_key_value_heads 32
pad_token_id null
rms_norm_eps 1e-08
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
sliding_window 3000
tie_word_embeddings false
vocab_size 32000
)"},
{"moshi_depth", R"(attention_chunk_size null
attention_dropout 0.0
audio_vocab_size 2048
ffn_dim 5632
head_dim 64
hidden_act "silu"
hidden_size 1024
!initializer_range
input_size 4096
layer_types null
max_position_embeddings 9
num_attention_heads 16
num_codebooks 8
num_hidden_layers 6
num_key_value_heads 16
pad_token_id null
rms_norm_eps 1e-08
sliding_window 8
tie_word_embeddings false
vocab_size 32000
)"},
{"moss_transcribe_diarize", R"(attention_chunk_size null
audio_chunk_size 480000
audio_merge_size 4
audio_token_id 151671
layer_types null
projector_bias true
projector_hidden_act "silu"
sliding_window null
tie_word_embeddings true
)"},
{"moss_transcribe_diarize_audio", R"(=d_model hidden_size
=encoder_attention_heads num_attention_heads
=encoder_ffn_dim intermediate_size
=encoder_layers num_hidden_layers
activation_dropout 0.0
activation_function "gelu"
attention_chunk_size null
attention_dropout 0.0
dropout 0.0
hidden_size 1024
!initializer_range
intermediate_size 4096
layer_types null
max_source_positions 1500
num_attention_heads 16
num_hidden_layers 24
num_mel_bins 80
sliding_window null
)"},
{"mpnet", R"(attention_chunk_size null
attention_probs_dropout_prob 0.1
hidden_act "gelu"
hidden_dropout_prob 0.1
hidden_size 768
!initializer_range
intermediate_size 3072
layer_norm_eps 1e-12
layer_types null
max_position_embeddings 512
num_attention_heads 12
num_hidden_layers 12
pad_token_id 1
relative_attention_num_buckets 32
sliding_window null
tie_word_embeddings true
vocab_size 30527
)"},
{"mpt", R"(=hidden_size d_model
=num_attention_heads n_heads
=num_hidden_layers n_layers
attention_chunk_size null
d_model 2048
!emb_pdrop
!embedding_fraction
!expansion_ratio
!init_device
!initializer_range
layer_norm_epsilon 1e-05
layer_types null
!learned_pos_emb
!logit_scale
max_seq_len 2048
n_heads 16
n_layers 24
!no_bias
!norm_type
pad_token_id null
!resid_pdrop
sliding_window null
tie_word_embeddings true
vocab_size 50368
)"},
{"mra", R"(add_cross_attention false
approx_mode "full"
attention_chunk_size null
attention_probs_dropout_prob 0.1
block_per_row 4
hidden_act "gelu"
hidden_dropout_prob 0.1
hidden_size 768
initial_prior_diagonal_n_blocks 0
initial_prior_first_n_blocks 0
!initializer_range
intermediate_size 3072
layer_norm_eps 1e-05
layer_types null
max_position_embeddings 512
num_attention_heads 12
num_hidden_layers 12
pad_token_id 1
sliding_window null
tie_word_embeddings true
type_vocab_size 1
vocab_size 50265
)"},
{"mt5", R"(=head_dim d_kv
=hidden_size d_model
=num_attention_heads num_heads
=num_hidden_layers num_layers
attention_chunk_size null
classifier_dropout 0.0
d_ff 1024
d_kv 64
d_model 512
decoder_start_token_id 0
dense_act_fn "gelu_new"
dropout_rate 0.1
feed_forward_proj "gated-gelu"
initializer_factor 1.0
is_decoder false
is_gated_act true
layer_norm_epsilon 1e-06
layer_types null
num_decoder_layers 8
num_heads 6
num_layers 8
pad_token_id 0
relative_attention_max_distance 128
relative_attention_num_buckets 32
sliding_window null
tie_word_embeddings true
vocab_size 250112
)"},
{"muse_glimmer", R"(attention_chunk_size null
image_token_id 200092
layer_types null
out_hidden_size 6144
projector_hidden_act "gelu"
projector_hidden_size 4096
sliding_window null
video_token_id 200091
)"},
{"muse_glimmer_text", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
!final_logit_softcapping
head_dim 128
hidden_activation "silu"
hidden_size 6656
!initializer_range
intermediate_size 19968
layer_rope_theta [10000.0,10000.0,10000.0,0,10000.0,10000.0,10000.0,0,10000.0,10000.0,10000.0,0,10000.0,10000.0,10000.0,0,10000.0,10000.0,10000.0,0,10000.0,10000.0,10000.0,0,10000.0,10000.0,10000.0,0,10000.0,10000.0,10000.0,0,10000.0,10000.0,10000.0,0,10000.0,10000.0,10000.0,0,10000.0,10000.0,10000.0,0,10000.0,10000.0,10000.0,0,10000.0,10000.0,10000.0,0]
layer_types ["sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention"]
max_position_embeddings 131072
num_attention_heads 32
num_hidden_layers 52
num_key_value_heads 2
!output_multiplier
pad_token_id null
post_norm_eps 1e-08
qk_scale_factor 3.87
rms_norm_eps 1e-05
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
sliding_window 2048
tie_word_embeddings false
vocab_size 202048
)"},
{"muse_glimmer_vision", R"(attention_chunk_size null
hidden_act "gelu"
hidden_size 1536
intermediate_size 8960
layer_norm_eps 1e-05
layer_types ["window_attention","window_attention","window_attention","full_attention","window_attention","window_attention","window_attention","full_attention","window_attention","window_attention","window_attention","full_attention","window_attention","window_attention","window_attention","full_attention","window_attention","window_attention","window_attention","full_attention","window_attention","window_attention","window_attention","full_attention","window_attention","window_attention","window_attention","full_attention","window_attention","window_attention","window_attention","full_attention","window_attention","window_attention","window_attention","full_attention","window_attention","window_attention","window_attention","full_attention","window_attention","window_attention","window_attention","full_attention","window_attention","window_attention","window_attention","full_attention","window_attention","full_attention"]
max_position_embeddings 1024
merge_size 2
num_attention_heads 16
num_hidden_layers 50
patch_size 14
patch_temporal 2
pos_emb_height 32
pos_emb_width 32
rope_parameters {"rope_theta":10000.0,"rope_type":"axial"}
sliding_window null
)"},
{"muse_spark", R"(attention_chunk_size null
audio_token_id 200038
image_token_id 200092
layer_types null
out_hidden_size 6144
projector_hidden_act "gelu"
projector_hidden_size 4096
sliding_window null
video_token_id 200091
)"},
{"muse_spark_audio", R"(attention_chunk_size null
conv_kernel_size 7
depths [2,2,2,2]
hidden_act "gelu"
hidden_sizes [256,512,1024,2048]
initializer_range 0.02
layer_types null
mlp_ratio 4.0
num_hidden_layers 4
out_hidden_size 8192
patch_sizes [16,6,5,4]
rms_norm_eps 1e-06
sliding_window null
)"},
{"muse_spark_text", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
!final_logit_softcapping
head_dim 64
hidden_act "silu"
hidden_size 8192
initializer_range 0.02
intermediate_size 16384
layer_rope_theta [500000.0,0,500000.0,500000.0,500000.0,0,500000.0,500000.0,500000.0,0,500000.0,500000.0,500000.0,0,500000.0,500000.0,500000.0,0,500000.0,500000.0,500000.0,0,500000.0,500000.0,500000.0,0,500000.0,500000.0,500000.0,0,500000.0,500000.0,500000.0,0,500000.0,500000.0,500000.0,0,500000.0,500000.0,500000.0,0,500000.0,500000.0,500000.0,0,500000.0,500000.0,500000.0,0,500000.0,500000.0,500000.0,0,500000.0,500000.0,500000.0,0,500000.0,500000.0,500000.0,0]
layer_types ["sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention"]
max_position_embeddings 1048576
mlp_layer_types ["sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse"]
moe_hidden_size 4096
moe_intermediate_size 4096
num_attention_heads 128
num_experts_per_tok 8
num_hidden_layers 62
num_key_value_heads 16
num_local_experts 256
output_multiplier 0.1767766952966369
!output_router_logits
pad_token_id null
post_norm_eps 1e-08
qk_scale_factor 5.4730064863875
residual_gate_temperature 0.3
rms_norm_eps 1e-05
rope_parameters {"rope_type":"default","rope_theta":500000.0}
routed_scaling_factor 1.0
sliding_window 2048
tie_word_embeddings false
vocab_size 202048
)"},
{"muse_spark_vision", R"(attention_chunk_size null
hidden_act "gelu"
hidden_size 1536
intermediate_size 8960
layer_norm_eps 1e-05
layer_types ["window_attention","window_attention","window_attention","full_attention","window_attention","window_attention","window_attention","full_attention","window_attention","window_attention","window_attention","full_attention","window_attention","window_attention","window_attention","full_attention","window_attention","window_attention","window_attention","full_attention","window_attention","window_attention","window_attention","full_attention","window_attention","window_attention","window_attention","full_attention","window_attention","window_attention","window_attention","full_attention","window_attention","window_attention","window_attention","full_attention","window_attention","window_attention","window_attention","full_attention","window_attention","window_attention","window_attention","full_attention","window_attention","window_attention","window_attention","full_attention","window_attention","full_attention"]
max_position_embeddings 1024
merge_size 2
num_attention_heads 16
num_hidden_layers 50
patch_size 14
patch_temporal 2
pos_emb_height 32
pos_emb_width 32
rope_parameters {"rope_theta":10000.0,"rope_type":"axial"}
sliding_window null
)"},
{"musicflamingo", R"(attention_chunk_size null
!audio_bos_token_id
!audio_eos_token_id
audio_frame_step 0.01
audio_token_id 151669
head_dim 1280
!ignore_keys_at_rope_validation
layer_types null
max_position_embeddings 1200.0
projector_bias true
projector_hidden_act "gelu"
rope_parameters {"rope_theta":1200.0,"partial_rotary_factor":0.2,"rope_type":"default"}
sliding_window null
)"},
{"musicgen", R"(attention_chunk_size null
!initializer_factor
layer_types null
sliding_window null
)"},
{"musicgen_decoder", R"(activation_dropout 0.0
activation_function "gelu"
add_cross_attention false
attention_chunk_size null
attention_dropout 0.0
audio_channels 1
cross_attention_hidden_size null
dropout 0.1
ffn_dim 4096
hidden_size 1024
!initializer_factor
is_decoder false
layer_types null
layerdrop 0.0
max_position_embeddings 2048
num_attention_heads 16
num_codebooks 4
num_hidden_layers 24
pad_token_id 2048
scale_embedding false
sliding_window null
tie_word_embeddings false
vocab_size 2048
)"},
{"musicgen_melody", R"(attention_chunk_size null
chroma_length 235
initializer_factor 0.02
layer_types null
num_chroma 12
sliding_window null
)"},
{"musicgen_melody_decoder", R"(activation_dropout 0.0
activation_function "gelu"
add_cross_attention false
attention_chunk_size null
attention_dropout 0.0
audio_channels 1
dropout 0.1
ffn_dim 4096
hidden_size 1024
initializer_factor 0.02
is_decoder false
layer_types null
layerdrop 0.0
max_position_embeddings 2048
num_attention_heads 16
num_codebooks 4
num_hidden_layers 24
pad_token_id 2048
scale_embedding false
sliding_window null
tie_word_embeddings false
vocab_size 2048
)"},
{"mvp", R"(=hidden_size d_model
=num_attention_heads encoder_attention_heads
=num_hidden_layers encoder_layers
activation_dropout 0.0
activation_function "gelu"
attention_chunk_size null
attention_dropout 0.0
classifier_dropout 0.0
d_model 1024
decoder_attention_heads 16
decoder_ffn_dim 4096
decoder_layerdrop 0.0
decoder_layers 12
decoder_start_token_id 2
dropout 0.1
encoder_attention_heads 16
encoder_ffn_dim 4096
encoder_layerdrop 0.0
encoder_layers 12
!init_std
is_decoder false
layer_types null
max_position_embeddings 1024
pad_token_id 1
prompt_length 100
prompt_mid_dim 800
scale_embedding false
sliding_window null
tie_word_embeddings true
use_prompt false
vocab_size 50267
)"},
{"nanochat", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
final_logit_softcapping 15.0
hidden_act "relu2"
hidden_size 768
initializer_range 0.02
intermediate_size 8192
layer_types null
max_position_embeddings 2048
num_attention_heads 6
num_hidden_layers 12
num_key_value_heads 6
pad_token_id 1
rms_norm_eps 1e-06
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
sliding_window null
tie_word_embeddings false
vocab_size 50304
)"},
{"nemo_speechlm", R"(attention_chunk_size null
audio_token_id 131072
layer_types null
sliding_window null
)"},
{"nemotron", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
head_dim 128
hidden_act "relu2"
hidden_size 6144
!ignore_keys_at_rope_validation
!initializer_range
intermediate_size 24576
layer_types null
max_position_embeddings 4096
mlp_bias false
norm_eps 1e-05
num_attention_heads 48
num_hidden_layers 32
num_key_value_heads null
pad_token_id null
rope_parameters {"rope_theta":10000.0,"partial_rotary_factor":0.5,"rope_type":"default"}
sliding_window null
tie_word_embeddings false
vocab_size 256000
)"},
{"nemotron3_5_transcribe_asr_audio", R"(attention_chunk_size null
attention_dropout 0.0
hidden_act "gelu"
hidden_size 1280
!ignore_keys_at_rope_validation
!initializer_range
intermediate_size 5120
layer_types null
max_position_embeddings 5000
num_attention_heads 10
num_hidden_layers 32
num_key_value_heads 10
num_mel_bins 128
rope_parameters {"rope_type":"default","rope_theta":10000.0,"partial_rotary_factor":0.5}
sliding_window null
subsampling_factor 8
)"},
{"nemotron3_5_transcribe_audio", R"(attention_chunk_size null
layer_types null
sliding_window null
speaker_activity_threshold 0.5
)"},
{"nemotron3_5_transcribe_word_timestamp", R"(attention_chunk_size null
attention_dropout 0.0
blank_token_id 23862
hidden_act "gelu"
hidden_size 1280
!initializer_range
intermediate_size 640
layer_types null
max_position_embeddings 5000
num_attention_heads 16
num_hidden_layers 2
num_key_value_heads 16
residual_scale 0.1
rope_parameters {"rope_type":"default","rope_theta":10000.0,"partial_rotary_factor":0.5}
sliding_window null
upsampling_factor 2
vocab_size 23863
)"},
{"nemotron_h", R"(=layer_types layers_block_type
=num_local_experts n_routed_experts
!attention_bias
attention_chunk_size null
attention_dropout 0.0
chunk_size 128
conv_kernel 4
expand 2
head_dim 128
hidden_dropout 0.0
hidden_size 4096
hybrid_override_pattern null
initializer_range 0.02
intermediate_size 21504
layer_norm_epsilon 1e-05
layer_types null
layers_block_type ["linear_attention","moe","full_attention","mlp"]
mamba_chunk_size null
mamba_conv_bias null
mamba_d_conv null
mamba_dt_init_floor null
mamba_dt_limit null
mamba_dt_max null
mamba_dt_min null
mamba_expand null
mamba_head_dim 64
mamba_hidden_act "silu"
mamba_n_groups null
mamba_num_heads 128
!mamba_proj_bias
!mamba_ssm_cache_dtype
max_position_embeddings 4096
mlp_bias false
mlp_hidden_act "relu2"
moe_intermediate_size 7688
moe_latent_size null
moe_shared_expert_intermediate_size 7688
!moe_shared_expert_overlap
mtp_hybrid_override_pattern null
mtp_layers_block_type ["full_attention","moe"]
n_group 1
n_groups 8
n_routed_experts 8
!n_shared_experts
norm_topk_prob true
num_attention_heads 32
num_experts_per_tok 2
num_key_value_heads 8
num_logits_to_keep 1
num_nextn_predict_layers 0
!output_router_logits
pad_token_id 0
rescale_prenorm_residual true
!residual_in_fp32
routed_scaling_factor 1.0
sliding_window null
ssm_state_size 128
tie_word_embeddings false
time_step_floor 0.0001
time_step_limit [0.0,Infinity]
time_step_max 0.1
time_step_min 0.001
topk_group 1
use_bias false
use_conv_bias true
use_mamba_kernels true
vocab_size 131072
)"},
{"nemotron_h_omni", R"(attention_chunk_size null
audio_token_id null
downsample_ratio 0.5
!force_image_size
image_token_id null
layer_types null
projector_hidden_size 4096
sliding_window null
video_pruning_rate 0.0
video_temporal_patch_size 2
!video_token_id
vision_hidden_size 1280
)"},
{"neomme", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
document_token_id 5
embedding_dim 128
embedding_rank 256
head_dim 64
hidden_act "relu2"
hidden_size 1024
image_token_id 6
!initializer_range
intermediate_size 3584
layer_types ["sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention"]
max_position_embeddings 16384
mlp_bias false
norm_eps 1e-06
num_attention_heads 16
num_hidden_layers 17
num_key_value_heads 4
pad_token_id 0
patch_size 32
per_layer_config {"01":{"sliding_window":1024},"03":{"sliding_window":1024},"05":{"sliding_window":null},"06":{"sliding_window":1024},"08":{"sliding_window":1024},"10":{"sliding_window":1024},"11":{"sliding_window":null},"13":{"sliding_window":1024},"15":{"sliding_window":1024},"16":{"sliding_window":null}}
residual_multiplier 0.17149858514250885
rope_parameters {"full_attention":{"rope_type":"default","rope_theta":1000000.0,"partial_rotary_factor":0.25},"sliding_attention":{"rope_type":"default","rope_theta":10000.0,"partial_rotary_factor":1.0}}
rope_theta null
sliding_window 256
tie_word_embeddings true
vocab_size 131072
)"},
{"nllb-moe", R"(=hidden_size d_model
=num_attention_heads encoder_attention_heads
=num_hidden_layers encoder_layers
activation_dropout 0.0
activation_function "relu"
attention_chunk_size null
attention_dropout 0.1
batch_prioritized_routing false
d_model 1024
decoder_attention_heads 16
decoder_ffn_dim 4096
decoder_layerdrop 0.05
decoder_layers 12
decoder_sparse_step 4
decoder_start_token_id 2
dropout 0.1
encoder_attention_heads 16
encoder_ffn_dim 4096
encoder_layerdrop 0.05
encoder_layers 12
encoder_sparse_step 4
expert_capacity 64
!init_std
layer_types null
max_position_embeddings 1024
moe_eval_capacity_token_fraction 1.0
moe_token_dropout 0.2
normalize_router_prob_before_dropping false
num_experts 128
output_router_logits false
pad_token_id 1
router_aux_loss_coef 0.001
router_bias false
router_dtype "float32"
router_ignore_padding_tokens false
router_z_loss_coef 0.001
scale_embedding true
second_expert_policy "all"
sliding_window null
tie_word_embeddings true
vocab_size 128112
)"},
{"nomic_bert", R"(attention_chunk_size null
attention_probs_dropout_prob 0.0
classifier_dropout null
head_dim 64
hidden_act "silu"
hidden_dropout_prob 0.0
hidden_size 768
!initializer_range
intermediate_size 3072
layer_norm_eps 1e-12
layer_types null
max_position_embeddings 2048
num_attention_heads 12
num_hidden_layers 12
pad_token_id 0
rope_parameters {"rope_theta":1000.0,"rope_type":"default"}
sliding_window null
type_vocab_size 2
vocab_size 30528
)"},
{"nystromformer", R"(add_cross_attention false
attention_chunk_size null
attention_probs_dropout_prob 0.1
conv_kernel_size 65
hidden_act "gelu_new"
hidden_dropout_prob 0.1
hidden_size 768
!initializer_range
intermediate_size 3072
inv_coeff_init_option false
layer_norm_eps 1e-05
layer_types null
max_position_embeddings 510
num_attention_heads 12
num_hidden_layers 12
num_landmarks 64
pad_token_id 1
segment_means_seq_len 64
sliding_window null
tie_word_embeddings true
type_vocab_size 2
vocab_size 30000
)"},
{"olmo", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
clip_qkv null
hidden_act "silu"
hidden_size 4096
!initializer_range
intermediate_size 11008
layer_types null
max_position_embeddings 2048
num_attention_heads 32
num_hidden_layers 32
num_key_value_heads 32
pad_token_id 1
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
sliding_window null
tie_word_embeddings false
vocab_size 50304
)"},
{"olmo2", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
hidden_act "silu"
hidden_size 4096
!initializer_range
intermediate_size 11008
layer_types null
max_position_embeddings 2048
num_attention_heads 32
num_hidden_layers 32
num_key_value_heads 32
pad_token_id 1
rms_norm_eps 1e-05
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
sliding_window null
tie_word_embeddings false
vocab_size 50304
)"},
{"olmo3", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
hidden_act "silu"
hidden_size 4096
!initializer_range
intermediate_size 11008
layer_types ["sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","full_attention"]
max_position_embeddings 2048
num_attention_heads 32
num_hidden_layers 32
num_key_value_heads 32
pad_token_id 1
rms_norm_eps 1e-05
rope_parameters {"sliding_attention":{"rope_type":"default","rope_theta":500000.0},"full_attention":{"rope_type":"default","rope_theta":500000.0}}
rope_scaling null
rope_theta null
sliding_window 4096
tie_word_embeddings false
vocab_size 50304
)"},
{"olmo_hybrid", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
hidden_act "silu"
hidden_size 3840
!initializer_range
intermediate_size 11008
layer_types ["linear_attention","linear_attention","linear_attention","full_attention","linear_attention","linear_attention","linear_attention","full_attention","linear_attention","linear_attention","linear_attention","full_attention","linear_attention","linear_attention","linear_attention","full_attention","linear_attention","linear_attention","linear_attention","full_attention","linear_attention","linear_attention","linear_attention","full_attention","linear_attention","linear_attention","linear_attention","full_attention","linear_attention","linear_attention","linear_attention","full_attention"]
linear_a_log_max 16.0
linear_a_log_min 0.0
linear_allow_neg_eigval true
linear_conv_kernel_dim 4
linear_dt_init_floor 0.0001
linear_dt_max 0.1
linear_dt_min 0.001
linear_key_head_dim 96
linear_num_key_heads 30
linear_num_value_heads 30
linear_value_head_dim 192
max_position_embeddings 65536
num_attention_heads 30
num_hidden_layers 32
num_key_value_heads 30
pad_token_id 100277
rms_norm_eps 1e-06
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
sliding_window null
tie_word_embeddings false
vocab_size 100352
)"},
{"olmoe", R"(=num_local_experts num_experts
attention_bias false
attention_chunk_size null
attention_dropout 0.0
clip_qkv null
hidden_act "silu"
hidden_size 2048
initializer_range 0.02
intermediate_size 2048
layer_types null
max_position_embeddings 4096
norm_topk_prob false
num_attention_heads 16
num_experts 64
num_experts_per_tok 8
num_hidden_layers 16
num_key_value_heads 16
output_router_logits false
pad_token_id 1
rms_norm_eps 1e-05
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
router_aux_loss_coef 0.01
sliding_window null
tie_word_embeddings false
vocab_size 50304
)"},
{"omniasr", R"(attention_chunk_size null
audio_token_id 10289
initializer_range 0.02
layer_types null
pad_token_id 1
sliding_window null
)"},
{"openai-gpt", R"(=hidden_size n_embd
=max_position_embeddings n_positions
=num_attention_heads n_head
=num_hidden_layers n_layer
afn "gelu"
attention_chunk_size null
attn_pdrop 0.1
embd_pdrop 0.1
!initializer_range
layer_norm_epsilon 1e-05
layer_types null
n_embd 768
n_head 12
n_layer 12
n_positions 512
pad_token_id null
resid_pdrop 0.1
sliding_window null
summary_activation null
summary_first_dropout 0.1
summary_proj_to_labels true
summary_type "cls_index"
summary_use_proj true
tie_word_embeddings true
vocab_size 40478
)"},
{"opt", R"(activation_function "relu"
attention_chunk_size null
attention_dropout 0.0
do_layer_norm_before true
dropout 0.1
enable_bias true
ffn_dim 3072
hidden_size 768
!init_std
layer_norm_elementwise_affine true
layer_types null
layerdrop 0.0
max_position_embeddings 2048
num_attention_heads 12
num_hidden_layers 12
pad_token_id 1
sliding_window null
tie_word_embeddings true
vocab_size 50272
word_embed_proj_dim 768
)"},
{"ovis2", R"(attention_chunk_size null
hidden_size 1536
image_token_id 151665
layer_types null
sliding_window null
tie_word_embeddings true
visual_indicator_token_ids [151666,151667,151668,151669,151670]
vocab_size 151643
)"},
{"ovis2_vision", R"(attention_chunk_size null
attention_dropout 0.0
hidden_act "silu"
hidden_size 1024
hidden_stride 1
image_size 224
!initializer_range
intermediate_size 2816
layer_types null
mlp_bias false
num_attention_heads 8
num_channels 3
num_hidden_layers 24
num_visual_indicator_tokens 5
patch_size 14
qkv_bias false
rms_norm_eps 1e-05
sliding_window null
tokenize_function "softmax"
vocab_size 16384
)"},
{"paddleocr_vl", R"(attention_chunk_size null
image_token_id 100295
layer_types null
sliding_window null
tie_word_embeddings true
torch_dtype null
!video_token_id
!vision_end_token_id
!vision_start_token_id
)"},
{"paddleocr_vl_text", R"(attention_chunk_size null
head_dim 128
hidden_act "silu"
hidden_size 1024
!initializer_range
intermediate_size 3072
layer_types null
max_position_embeddings 131072
num_attention_heads 16
num_hidden_layers 18
num_key_value_heads 2
pad_token_id 0
rms_norm_eps 1e-05
rope_parameters {"rope_theta":500000.0,"rope_type":"default"}
sliding_window null
tie_word_embeddings true
torch_dtype null
use_bias false
vocab_size 103424
)"},
{"paddleocr_vl_vision", R"(attention_chunk_size null
attention_dropout 0.0
hidden_act "gelu_pytorch_tanh"
hidden_size 1152
image_size 384
intermediate_size 4304
layer_norm_eps 1e-06
layer_types null
num_attention_heads 16
num_channels 3
num_hidden_layers 27
patch_size 14
rope_parameters {"rope_theta":10000.0,"rope_type":"axial"}
sliding_window null
!spatial_merge_size
torch_dtype null
)"},
{"paligemma", R"(=image_token_id image_token_index
attention_chunk_size null
hidden_size 2048
image_token_index 256000
layer_types null
projection_dim 2048
sliding_window null
tie_word_embeddings true
vocab_size 257152
)"},
{"pegasus", R"(=hidden_size d_model
=num_attention_heads encoder_attention_heads
=num_hidden_layers encoder_layers
activation_dropout 0.0
activation_function "gelu"
attention_chunk_size null
attention_dropout 0.0
d_model 1024
decoder_attention_heads 16
decoder_ffn_dim 4096
decoder_layerdrop 0.0
decoder_layers 12
decoder_start_token_id 0
dropout 0.1
encoder_attention_heads 16
encoder_ffn_dim 4096
encoder_layerdrop 0.0
encoder_layers 12
!forced_eos_token_id
!init_std
is_decoder false
layer_types null
max_position_embeddings 1024
pad_token_id 0
scale_embedding false
sliding_window null
tie_word_embeddings true
vocab_size 50265
)"},
{"pegasus_x", R"(=hidden_size d_model
=num_attention_heads encoder_attention_heads
=num_hidden_layers encoder_layers
activation_dropout 0.0
activation_function "gelu"
attention_chunk_size null
attention_dropout 0.0
block_size 512
d_model 1024
decoder_attention_heads 16
decoder_ffn_dim 4096
decoder_layerdrop 0.0
decoder_layers 16
decoder_start_token_id 0
dropout 0.1
encoder_attention_heads 16
encoder_ffn_dim 4096
encoder_layerdrop 0.0
encoder_layers 16
!forced_eos_token_id
!init_std
layer_types null
max_position_embeddings 16384
num_global_tokens 32
pad_token_id 0
scale_embedding true
sliding_window null
stagger_local_blocks true
tie_word_embeddings true
vocab_size 96103
)"},
{"perceiver", R"(attention_chunk_size null
attention_probs_dropout_prob 0.1
audio_samples_per_frame 1920
cross_attention_shape_for_attention "kv"
cross_attention_widening_factor 1
d_latents 1280
d_model 768
hidden_act "gelu"
image_size 56
initializer_range 0.02
!layer_norm_eps
layer_types null
max_position_embeddings 2048
num_blocks 1
num_cross_attention_heads 8
num_frames 16
num_latents 256
num_self_attends_per_block 26
num_self_attention_heads 8
output_num_channels 512
output_shape [1,16,224,224]
qk_channels null
samples_per_patch 16
self_attention_widening_factor 1
sliding_window null
train_size [368,496]
use_query_residual true
v_channels null
vocab_size 262
)"},
{"perception_lm", R"(attention_chunk_size null
image_token_id 128002
layer_types null
projector_pooling_ratio 1
sliding_window null
tie_word_embeddings false
video_token_id 128003
vision_use_cls_token true
)"},
{"persimmon", R"(attention_chunk_size null
attention_dropout 0.0
hidden_act "relu2"
hidden_dropout 0.0
hidden_size 4096
!ignore_keys_at_rope_validation
!initializer_range
intermediate_size 16384
layer_norm_eps 1e-05
layer_types null
max_position_embeddings 16384
num_attention_heads 64
num_hidden_layers 36
pad_token_id null
qk_layernorm true
rope_parameters {"rope_theta":10000.0,"partial_rotary_factor":0.5,"rope_type":"default"}
sliding_window null
tie_word_embeddings false
vocab_size 262144
)"},
{"phi", R"(attention_chunk_size null
attention_dropout 0.0
embd_pdrop 0.0
hidden_act "gelu_new"
hidden_size 2048
!ignore_keys_at_rope_validation
!initializer_range
intermediate_size 8192
layer_norm_eps 1e-05
layer_types null
max_position_embeddings 2048
num_attention_heads 32
num_hidden_layers 24
num_key_value_heads 32
pad_token_id null
qk_layernorm false
resid_pdrop 0.0
rope_parameters {"rope_theta":10000.0,"partial_rotary_factor":0.5,"rope_type":"default"}
sliding_window null
tie_word_embeddings false
vocab_size 51200
)"},
{"phi3", R"(attention_chunk_size null
attention_dropout 0.0
!embd_pdrop
hidden_act "silu"
hidden_size 3072
!initializer_range
intermediate_size 8192
layer_types null
max_position_embeddings 4096
num_attention_heads 32
num_hidden_layers 32
num_key_value_heads 32
original_max_position_embeddings 4096
pad_token_id 32000
partial_rotary_factor null
resid_pdrop 0.0
rms_norm_eps 1e-05
rope_parameters {"rope_theta":10000.0,"partial_rotary_factor":1.0,"rope_type":"default"}
rope_scaling null
rope_theta null
sliding_window null
tie_word_embeddings false
vocab_size 32064
)"},
{"phi4_multimodal", R"(attention_chunk_size null
attention_dropout 0.0
embd_pdrop 0.0
hidden_act "silu"
hidden_size 3072
!initializer_range
intermediate_size 8192
layer_types null
max_position_embeddings 131072
num_attention_heads 32
num_hidden_layers 32
num_key_value_heads 8
original_max_position_embeddings 4096
pad_token_id 199999
partial_rotary_factor null
resid_pdrop 0.0
rms_norm_eps 1e-05
rope_parameters {"rope_theta":10000.0,"partial_rotary_factor":1.0,"rope_type":"default"}
rope_scaling null
rope_theta null
sliding_window null
tie_word_embeddings false
vocab_size 200064
)"},
{"phi4_multimodal_audio", R"(activation "swish"
attention_chunk_size null
!audio_token_id
bias_max_distance 1000
bias_symmetric false
chunk_size -1
conv_activation "swish"
conv_glu_type "swish"
depthwise_multiplier 1
depthwise_separable_out_channel 1024
!downsample_rate
dropout_rate 0.0
ext_pw_out_channel 1024
!feature_layer
hidden_size 1024
!initializer_range
input_size 80
intermediate_size 1536
kernel_size 3
layer_types null
left_chunk 18
nemo_activation "relu"
nemo_conv_channels 1024
nemo_final_size 10
num_attention_heads 16
num_blocks 24
partial_rotary_factor null
rope_scaling null
rope_theta null
sliding_window null
time_reduction 8
)"},
{"phi4_multimodal_vision", R"(attention_chunk_size null
attention_dropout 0.0
!crop_size
!feature_layer
hidden_act "gelu_pytorch_tanh"
hidden_size 1152
image_size 448
!image_token_id
intermediate_size 4304
layer_norm_eps 1e-06
layer_types null
num_attention_heads 16
num_channels 3
num_hidden_layers 27
partial_rotary_factor null
patch_size 14
rope_scaling null
rope_theta null
sliding_window null
)"},
{"phimoe", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
hidden_act "silu"
hidden_size 4096
initializer_range 0.02
input_jitter_noise 0.0
intermediate_size 6400
layer_types null
lm_head_bias false
max_position_embeddings 131072
num_attention_heads 32
num_experts_per_tok 2
num_hidden_layers 32
num_key_value_heads 8
num_local_experts 16
output_router_logits false
pad_token_id null
rms_norm_eps 1e-05
rope_parameters {"rope_theta":1000000.0,"rope_type":"default"}
router_aux_loss_coef 0.001
router_jitter_noise 0.01
sliding_window null
tie_word_embeddings false
vocab_size 32064
)"},
{"pi0", R"(attention_chunk_size null
chunk_size 50
layer_types null
loss_reduction "mean"
max_action_dim 32
max_period 4.0
max_state_dim 32
min_period 0.004
num_inference_steps 10
sliding_window null
time_sampling_beta_alpha 1.5
time_sampling_beta_beta 1.0
time_sampling_offset 0.001
time_sampling_scale 0.999
)"},
{"pix2struct", R"(attention_chunk_size null
decoder_start_token_id 0
initializer_factor 1.0
initializer_range 0.02
is_vqa false
layer_types null
pad_token_id 0
sliding_window null
tie_word_embeddings false
)"},
{"pix2struct_text_model", R"(=decoder_attention_heads num_heads
=decoder_layers num_layers
=encoder_attention_heads num_heads
=encoder_layers num_layers
=hidden_size hidden_size
=num_attention_heads num_heads
=num_hidden_layers num_layers
!add_cross_attention
attention_chunk_size null
d_ff 2048
d_kv 64
decoder_start_token_id 0
dense_act_fn "gelu_new"
dropout_rate 0.1
hidden_size 768
initializer_factor 1.0
is_decoder true
layer_norm_epsilon 1e-06
layer_types null
num_heads 12
num_layers 12
pad_token_id 0
relative_attention_max_distance 128
relative_attention_num_buckets 32
sliding_window null
tie_word_embeddings false
vocab_size 50244
)"},
{"pix2struct_vision_model", R"(attention_chunk_size null
attention_dropout 0.0
d_ff 2048
d_kv 64
dense_act_fn "gelu_new"
dropout_rate 0.0
hidden_size 768
initializer_factor 1.0
initializer_range 1e-10
layer_norm_eps 1e-06
layer_types null
num_attention_heads 12
num_hidden_layers 12
patch_embed_hidden_size 768
relative_attention_max_distance 128
relative_attention_num_buckets 32
seq_len 4096
sliding_window null
)"},
{"pixio", R"(apply_layernorm true
attention_chunk_size null
attention_probs_dropout_prob 0.0
drop_path_rate 0.0
hidden_act "gelu"
hidden_dropout_prob 0.0
hidden_size 1280
image_size 256
initializer_range 0.02
layer_norm_eps 1e-06
layer_types null
mlp_ratio 4
n_cls_tokens 8
num_attention_heads 16
num_channels 3
num_hidden_layers 32
out_features ["stage32"]
out_indices [32]
patch_size 16
qkv_bias true
reshape_hidden_states true
sliding_window null
!stage_names
)"},
{"plbart", R"(=hidden_size d_model
=initializer_range init_std
=num_attention_heads encoder_attention_heads
=num_hidden_layers encoder_layers
activation_dropout 0.0
activation_function "gelu"
attention_chunk_size null
attention_dropout 0.1
classifier_dropout 0.0
d_model 768
decoder_attention_heads 12
decoder_ffn_dim 3072
decoder_layerdrop 0.0
decoder_layers 6
dropout 0.1
encoder_attention_heads 12
encoder_ffn_dim 3072
encoder_layerdrop 0.0
encoder_layers 6
!forced_eos_token_id
!init_std
is_decoder false
layer_types null
max_position_embeddings 1024
pad_token_id 1
scale_embedding true
sliding_window null
tie_word_embeddings true
vocab_size 50005
)"},
{"poolformer", R"(attention_chunk_size null
depths [2,2,6,2]
drop_path_rate 0.0
hidden_act "gelu"
hidden_sizes [64,128,320,512]
!initializer_range
layer_scale_init_value 1e-05
layer_types null
mlp_ratio 4.0
num_channels 3
num_encoder_blocks 4
padding [2,1,1,1]
!patch_size
patch_sizes [7,3,3,3]
pool_size 3
sliding_window null
!stride
strides [4,2,2,2]
use_layer_scale true
)"},
{"pp_chart2table", R"(=image_token_id image_token_index
attention_chunk_size null
!image_seq_length
!image_token_index
layer_types null
sliding_window null
tie_word_embeddings true
)"},
{"pp_chart2table_vision", R"(attention_chunk_size null
attention_dropout 0.0
!global_attn_indexes
!hidden_act
hidden_size 768
!image_size
!initializer_range
!layer_norm_eps
layer_types null
!mlp_dim
num_attention_heads 12
!num_channels
num_hidden_layers 12
!output_channels
!patch_size
!qkv_bias
sliding_window null
!use_abs_pos
!use_rel_pos
!window_size
)"},
{"pp_formulanet", R"(attention_chunk_size null
layer_types null
sliding_window null
)"},
{"pp_formulanet_text", R"(=hidden_size d_model
=num_attention_heads encoder_attention_heads
=num_hidden_layers encoder_layers
activation_dropout 0.0
activation_function "gelu"
attention_chunk_size null
attention_dropout 0.0
d_model 512
decoder_attention_heads 16
decoder_ffn_dim 2048
decoder_layerdrop 0.0
decoder_layers 8
!decoder_start_token_id
dropout 0.1
encoder_attention_heads 16
encoder_layers 12
!forced_eos_token_id
!init_std
layer_types null
max_position_embeddings 2560
pad_token_id 1
scale_embedding true
sliding_window null
tie_word_embeddings false
vocab_size 50000
)"},
{"pp_formulanet_vision", R"(attention_chunk_size null
attention_dropout 0.0
decoder_hidden_size 512
global_attn_indexes [2,5,8,11]
hidden_act "gelu"
hidden_size 768
image_size 512
!initializer_range
layer_norm_eps 1e-06
layer_types null
mlp_dim 3072
num_attention_heads 12
num_channels 3
num_hidden_layers 12
output_channels 256
patch_size 16
post_conv_in_channels 256
post_conv_mid_channels 512
post_conv_out_channels 1024
qkv_bias true
sliding_window null
use_abs_pos true
use_rel_pos true
window_size 14
)"},
{"pp_lcnet", R"(attention_chunk_size null
block_configs [[[3,16,32,1,false]],[[3,32,64,2,false],[3,64,64,1,false]],[[3,64,128,2,false],[3,128,128,1,false]],[[3,128,256,2,false],[5,256,256,1,false],[5,256,256,1,false],[5,256,256,1,false],[5,256,256,1,false],[5,256,256,1,false]],[[5,256,512,2,true],[5,512,512,1,true]]]
class_expand 1280
!depths
divisor 8
hidden_act "hardswish"
hidden_dropout_prob 0.2
layer_types null
out_features ["stage5"]
out_indices [5]
reduction 4
scale 1.0
sliding_window null
!stage_names
stem_channels 16
stem_stride 2
)"},
{"pp_lcnet_v3", R"(attention_chunk_size null
block_configs [[[3,16,32,1,false]],[[3,32,64,2,false],[3,64,64,1,false]],[[3,64,128,2,false],[3,128,128,1,false]],[[3,128,256,2,false],[5,256,256,1,false],[5,256,256,1,false],[5,256,256,1,false],[5,256,256,1,false]],[[5,256,512,2,true],[5,512,512,1,true],[5,512,512,1,false],[5,512,512,1,false]]]
conv_symmetric_num 4
!depths
divisor 8
hidden_act "hardswish"
layer_types null
out_features ["stage5"]
out_indices [5]
reduction 4
scale 1.0
sliding_window null
!stage_names
stem_channels 16
stem_stride 2
)"},
{"pp_lcnet_v4", R"(attention_chunk_size null
block_configs [[[3,96,96,1,true]],[[3,96,96,1,false],[3,96,96,1,false]],[[3,96,192,[2,1],false],[3,192,192,1,true],[3,192,192,1,false],[3,192,192,1,true],[3,192,192,1,false],[3,192,192,1,true],[3,192,192,1,false]],[[3,192,384,[2,1],false],[3,384,384,1,true],[3,384,384,1,false]]]
!depths
hidden_act "relu"
layer_types null
num_channels 3
out_features ["stage4"]
out_indices [4]
reduction 4
scale 1.0
sliding_window null
!stage_names
!stage_out_channels
stem_channels [3,48,96]
stem_strides [2,1,1,2,1]
stem_type "large"
use_learnable_affine_block false
)"},
{"prophetnet", R"(=num_attention_heads num_encoder_attention_heads
activation_dropout 0.1
activation_function "gelu"
add_cross_attention true
attention_chunk_size null
attention_dropout 0.1
decoder_ffn_dim 4096
decoder_start_token_id 0
disable_ngram_loss false
dropout 0.1
encoder_ffn_dim 4096
eps 0.0
hidden_size 1024
!init_std
is_decoder false
layer_types null
max_position_embeddings 512
ngram 2
num_buckets 32
num_decoder_attention_heads 16
num_decoder_layers 12
num_encoder_attention_heads 16
num_encoder_layers 12
pad_token_id 0
relative_max_distance 128
sliding_window null
tie_word_embeddings true
vocab_size 30522
)"},
{"pvt", R"(attention_chunk_size null
attention_probs_dropout_prob 0.0
depths [2,2,2,2]
drop_path_rate 0.0
hidden_act "gelu"
hidden_dropout_prob 0.0
hidden_sizes [64,128,320,512]
image_size 224
initializer_range 0.02
layer_norm_eps 1e-06
layer_types null
mlp_ratios [8,8,4,4]
num_attention_heads [1,2,5,8]
num_channels 3
num_encoder_blocks 4
num_labels 1000
patch_sizes [4,2,2,2]
qkv_bias true
sequence_reduction_ratios [8,4,2,1]
sliding_window null
strides [4,2,2,2]
)"},
{"pvt_v2", R"(attention_chunk_size null
attention_probs_dropout_prob 0.0
depths [2,2,2,2]
drop_path_rate 0.0
hidden_act "gelu"
hidden_dropout_prob 0.0
hidden_sizes [32,64,160,256]
image_size [224,224]
initializer_range 0.02
layer_norm_eps 1e-06
layer_types null
linear_attention false
mlp_ratios [8,8,4,4]
num_attention_heads [1,2,5,8]
num_channels 3
num_encoder_blocks 4
out_features ["stage4"]
out_indices [3]
patch_sizes [7,3,3,3]
qkv_bias true
sliding_window null
sr_ratios [8,4,2,1]
!stage_names
strides [4,2,2,2]
)"},
{"qianfan_ocr", R"(attention_chunk_size null
downsample_ratio 0.5
!image_seq_length
image_token_id 151667
layer_types null
projector_hidden_act "gelu"
sliding_window null
tie_word_embeddings false
!vision_feature_layer
!vision_feature_select_strategy
)"},
{"qianfan_ocr_vision", R"(attention_bias true
attention_chunk_size null
attention_dropout 0.0
drop_path_rate 0.1
hidden_act "gelu"
hidden_dropout_prob 0.0
hidden_size 1024
image_size [448,448]
!initializer_range
intermediate_size 4096
layer_norm_eps 1e-06
layer_scale_init_value 0.1
layer_types null
norm_type "layer_norm"
num_attention_heads 16
num_channels 3
num_hidden_layers 24
patch_size [14,14]
projection_dropout 0.0
sliding_window null
use_absolute_position_embeddings true
use_mask_token false
use_mean_pooling true
use_qk_norm false
)"},
{"qwen2", R"(attention_chunk_size null
attention_dropout 0.0
hidden_act "silu"
hidden_size 4096
!initializer_range
intermediate_size 22016
layer_types ["full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention"]
max_position_embeddings 32768
max_window_layers 28
num_attention_heads 32
num_hidden_layers 32
num_key_value_heads 32
pad_token_id null
rms_norm_eps 1e-06
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
sliding_window null
tie_word_embeddings false
use_sliding_window false
vocab_size 151936
)"},
{"qwen2_5_omni_audio_encoder", R"(=hidden_size d_model
=intermediate_size encoder_ffn_dim
=num_attention_heads encoder_attention_heads
=num_hidden_layers encoder_layers
activation_dropout 0.0
activation_function "gelu"
attention_chunk_size null
attention_dropout 0.0
d_model 1280
dropout 0.0
encoder_attention_heads 20
encoder_ffn_dim 5120
encoder_layers 32
!initializer_range
layer_types null
max_source_positions 1500
n_window 100
num_mel_bins 128
output_dim 3584
scale_embedding false
sliding_window null
)"},
{"qwen2_5_omni_text", R"(attention_chunk_size null
attention_dropout 0.0
hidden_act "silu"
hidden_size 3584
!initializer_range
intermediate_size 18944
layer_types ["full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention"]
max_position_embeddings 32768
max_window_layers 28
num_attention_heads 28
num_hidden_layers 28
num_key_value_heads 4
pad_token_id null
rms_norm_eps 1e-06
rope_parameters {"rope_theta":1000000.0,"rope_type":"default"}
sliding_window null
tie_word_embeddings true
use_sliding_window false
vocab_size 152064
)"},
{"qwen2_5_omni_thinker", R"(=audio_token_id audio_token_index
=image_token_id image_token_index
=video_token_id video_token_index
attention_chunk_size null
!audio_end_token_id
audio_start_token_id 151647
audio_token_index 151646
image_token_index 151655
!initializer_range
layer_types null
position_id_per_seconds 25
seconds_per_chunk 2
sliding_window null
tie_word_embeddings false
!user_token_id
video_token_index 151656
)"},
{"qwen2_5_omni_vision_encoder", R"(=num_attention_heads num_heads
=num_hidden_layers depth
attention_chunk_size null
depth 32
fullatt_block_indexes [7,15,23,31]
hidden_act "silu"
hidden_size 3584
in_channels 3
!initializer_range
intermediate_size 3420
layer_types null
num_heads 16
out_hidden_size 3584
patch_size 14
rope_parameters {"rope_theta":10000.0,"rope_type":"axial"}
sliding_window null
spatial_merge_size 2
temporal_patch_size 2
window_size 112
)"},
{"qwen2_5_vl", R"(attention_chunk_size null
image_token_id 151655
layer_types null
rope_scaling null
rope_theta null
sliding_window null
tie_word_embeddings false
torch_dtype null
video_token_id 151656
!vision_end_token_id
!vision_start_token_id
)"},
{"qwen2_5_vl_text", R"(attention_chunk_size null
attention_dropout 0.0
hidden_act "silu"
hidden_size 8192
!initializer_range
intermediate_size 29568
layer_types ["full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention"]
max_position_embeddings 32768
max_window_layers 80
num_attention_heads 64
num_hidden_layers 80
num_key_value_heads 8
pad_token_id null
rms_norm_eps 1e-05
rope_parameters {"rope_theta":1000000.0,"rope_type":"default"}
rope_scaling null
rope_theta null
sliding_window null
torch_dtype null
use_sliding_window false
vocab_size 152064
)"},
{"qwen2_5_vl_vision", R"(=num_attention_heads num_heads
=num_hidden_layers depth
attention_chunk_size null
depth 32
fullatt_block_indexes [7,15,23,31]
hidden_act "silu"
hidden_size 3584
in_channels 3
!initializer_range
intermediate_size 3420
layer_types null
num_heads 16
out_hidden_size 3584
patch_size 14
rope_parameters {"rope_theta":10000.0,"rope_type":"axial"}
rope_scaling null
rope_theta null
sliding_window null
spatial_merge_size 2
temporal_patch_size 2
!tokens_per_second
torch_dtype null
window_size 112
)"},
{"qwen2_audio", R"(=audio_token_id audio_token_index
attention_chunk_size null
audio_token_index 151646
layer_types null
sliding_window null
)"},
{"qwen2_moe", R"(attention_chunk_size null
attention_dropout 0.0
decoder_sparse_step 1
hidden_act "silu"
hidden_size 2048
initializer_range 0.02
intermediate_size 5632
layer_types ["full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention"]
max_position_embeddings 32768
max_window_layers 28
mlp_only_layers []
moe_intermediate_size 1408
norm_topk_prob false
num_attention_heads 16
num_experts 60
num_experts_per_tok 4
num_hidden_layers 24
num_key_value_heads 16
output_router_logits false
pad_token_id null
qkv_bias true
rms_norm_eps 1e-06
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
router_aux_loss_coef 0.001
shared_expert_intermediate_size 5632
sliding_window 0
tie_word_embeddings false
use_sliding_window false
vocab_size 151936
)"},
{"qwen2_vl", R"(attention_chunk_size null
image_token_id 151655
layer_types null
rope_scaling null
rope_theta null
sliding_window null
tie_word_embeddings false
torch_dtype null
video_token_id 151656
!vision_end_token_id
!vision_start_token_id
)"},
{"qwen2_vl_text", R"(attention_chunk_size null
attention_dropout 0.0
hidden_act "silu"
hidden_size 8192
!initializer_range
intermediate_size 29568
layer_types ["full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention"]
max_position_embeddings 32768
max_window_layers 80
num_attention_heads 64
num_hidden_layers 80
num_key_value_heads 8
pad_token_id null
rms_norm_eps 1e-05
rope_parameters {"rope_theta":1000000.0,"rope_type":"default"}
rope_scaling null
rope_theta null
sliding_window null
torch_dtype null
use_sliding_window false
vocab_size 152064
)"},
{"qwen2_vl_vision", R"(=num_attention_heads num_heads
=num_hidden_layers depth
attention_chunk_size null
depth 32
embed_dim 1280
hidden_act "quick_gelu"
hidden_size 3584
in_channels 3
!initializer_range
layer_types null
mlp_ratio 4
num_heads 16
patch_size 14
rope_parameters {"rope_theta":10000.0,"rope_type":"axial"}
rope_scaling null
rope_theta null
sliding_window null
spatial_merge_size 2
temporal_patch_size 2
torch_dtype null
)"},
{"qwen3", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
head_dim 128
hidden_act "silu"
hidden_size 4096
!initializer_range
intermediate_size 22016
layer_types ["full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention"]
max_position_embeddings 32768
max_window_layers 28
num_attention_heads 32
num_hidden_layers 32
num_key_value_heads 32
pad_token_id null
rms_norm_eps 1e-06
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
sliding_window null
tie_word_embeddings false
use_sliding_window false
vocab_size 151936
)"},
{"qwen3_5", R"(attention_chunk_size null
full_attention_interval null
image_token_id 248056
layer_types null
sliding_window null
tie_word_embeddings false
video_token_id 248057
!vision_end_token_id
!vision_start_token_id
)"},
{"qwen3_5_moe", R"(attention_chunk_size null
full_attention_interval null
image_token_id 248056
layer_types null
sliding_window null
tie_word_embeddings false
video_token_id 248057
!vision_end_token_id
!vision_start_token_id
)"},
{"qwen3_5_moe_text", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
full_attention_interval null
head_dim 256
hidden_act "silu"
hidden_size 2048
!ignore_keys_at_rope_validation
initializer_range 0.02
layer_types ["linear_attention","linear_attention","linear_attention","full_attention","linear_attention","linear_attention","linear_attention","full_attention","linear_attention","linear_attention","linear_attention","full_attention","linear_attention","linear_attention","linear_attention","full_attention","linear_attention","linear_attention","linear_attention","full_attention","linear_attention","linear_attention","linear_attention","full_attention","linear_attention","linear_attention","linear_attention","full_attention","linear_attention","linear_attention","linear_attention","full_attention","linear_attention","linear_attention","linear_attention","full_attention","linear_attention","linear_attention","linear_attention","full_attention"]
linear_conv_kernel_dim 4
linear_key_head_dim 128
linear_num_key_heads 16
linear_num_value_heads 32
linear_value_head_dim 128
max_position_embeddings 32768
moe_intermediate_size 512
num_attention_heads 16
num_experts 256
num_experts_per_tok 8
num_hidden_layers 40
num_key_value_heads 2
output_router_logits false
pad_token_id null
rms_norm_eps 1e-06
rope_parameters {"rope_theta":10000.0,"partial_rotary_factor":0.25,"rope_type":"default"}
router_aux_loss_coef 0.001
shared_expert_intermediate_size 512
sliding_window null
tie_word_embeddings false
vocab_size 248320
)"},
{"qwen3_5_moe_vision", R"(=num_attention_heads num_heads
=num_hidden_layers depth
attention_chunk_size null
depth 27
full_attention_interval null
hidden_act "gelu_pytorch_tanh"
hidden_size 1152
in_channels 3
initializer_range 0.02
intermediate_size 4304
layer_types null
num_heads 16
num_position_embeddings 2304
out_hidden_size 3584
patch_size 16
rope_parameters {"rope_theta":10000.0,"rope_type":"axial"}
sliding_window null
spatial_merge_size 2
temporal_patch_size 2
)"},
{"qwen3_5_text", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
full_attention_interval null
head_dim 256
hidden_act "silu"
hidden_size 4096
!ignore_keys_at_rope_validation
!initializer_range
intermediate_size 12288
layer_types ["linear_attention","linear_attention","linear_attention","full_attention","linear_attention","linear_attention","linear_attention","full_attention","linear_attention","linear_attention","linear_attention","full_attention","linear_attention","linear_attention","linear_attention","full_attention","linear_attention","linear_attention","linear_attention","full_attention","linear_attention","linear_attention","linear_attention","full_attention","linear_attention","linear_attention","linear_attention","full_attention","linear_attention","linear_attention","linear_attention","full_attention"]
linear_conv_kernel_dim 4
linear_key_head_dim 128
linear_num_key_heads 16
linear_num_value_heads 32
linear_value_head_dim 128
max_position_embeddings 32768
num_attention_heads 16
num_hidden_layers 32
num_key_value_heads 4
pad_token_id null
rms_norm_eps 1e-06
rope_parameters {"rope_theta":10000.0,"partial_rotary_factor":0.25,"rope_type":"default"}
sliding_window null
tie_word_embeddings false
vocab_size 248320
)"},
{"qwen3_5_vision", R"(=num_attention_heads num_heads
=num_hidden_layers depth
attention_chunk_size null
depth 27
full_attention_interval null
hidden_act "gelu_pytorch_tanh"
hidden_size 1152
in_channels 3
!initializer_range
intermediate_size 4304
layer_types null
num_heads 16
num_position_embeddings 2304
out_hidden_size 3584
patch_size 16
rope_parameters {"rope_theta":10000.0,"rope_type":"axial"}
sliding_window null
spatial_merge_size 2
temporal_patch_size 2
)"},
{"qwen3_asr", R"(attention_chunk_size null
audio_token_id 151676
!initializer_range
layer_types null
pad_token_id 151645
sliding_window null
tie_word_embeddings true
!timestamp_token_id
token_classification_bias false
)"},
{"qwen3_moe", R"(=num_experts num_local_experts
attention_bias false
attention_chunk_size null
attention_dropout 0.0
decoder_sparse_step 1
hidden_act "silu"
hidden_size 2048
initializer_range 0.02
intermediate_size 6144
layer_types null
max_position_embeddings 32768
mlp_only_layers []
moe_intermediate_size 768
norm_topk_prob false
num_attention_heads 32
num_experts_per_tok 8
num_hidden_layers 24
num_key_value_heads 4
num_local_experts 128
output_router_logits false
pad_token_id null
rms_norm_eps 1e-06
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
router_aux_loss_coef 0.001
sliding_window null
tie_word_embeddings false
use_sliding_window false
vocab_size 151936
)"},
{"qwen3_next", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
decoder_sparse_step 1
full_attention_interval null
head_dim 256
hidden_act "silu"
hidden_size 2048
!ignore_keys_at_rope_validation
initializer_range 0.02
intermediate_size 5632
layer_types ["linear_attention","linear_attention","linear_attention","full_attention","linear_attention","linear_attention","linear_attention","full_attention","linear_attention","linear_attention","linear_attention","full_attention","linear_attention","linear_attention","linear_attention","full_attention","linear_attention","linear_attention","linear_attention","full_attention","linear_attention","linear_attention","linear_attention","full_attention","linear_attention","linear_attention","linear_attention","full_attention","linear_attention","linear_attention","linear_attention","full_attention","linear_attention","linear_attention","linear_attention","full_attention","linear_attention","linear_attention","linear_attention","full_attention","linear_attention","linear_attention","linear_attention","full_attention","linear_attention","linear_attention","linear_attention","full_attention"]
linear_conv_kernel_dim 4
linear_key_head_dim 128
linear_num_key_heads 16
linear_num_value_heads 32
linear_value_head_dim 128
max_position_embeddings 32768
mlp_only_layers []
moe_intermediate_size 512
norm_topk_prob true
num_attention_heads 16
num_experts 512
num_experts_per_tok 10
num_hidden_layers 48
num_key_value_heads 2
output_router_logits false
pad_token_id null
rms_norm_eps 1e-06
rope_parameters {"rope_theta":10000.0,"partial_rotary_factor":0.25,"rope_type":"default"}
router_aux_loss_coef 0.001
shared_expert_intermediate_size 512
sliding_window null
tie_word_embeddings false
vocab_size 151936
)"},
{"qwen3_omni_moe_audio_encoder", R"(=hidden_size d_model
=intermediate_size encoder_ffn_dim
=num_attention_heads encoder_attention_heads
=num_hidden_layers encoder_layers
activation_dropout 0.0
activation_function "gelu"
attention_chunk_size null
attention_dropout 0.0
conv_chunksize 500
d_model 1280
downsample_hidden_size 480
dropout 0.0
encoder_attention_heads 20
encoder_ffn_dim 5120
encoder_layers 32
initializer_range 0.02
layer_types null
max_source_positions 1500
n_window 50
n_window_infer 800
num_mel_bins 128
output_dim 3584
scale_embedding false
sliding_window null
)"},
{"qwen3_omni_moe_text", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
decoder_sparse_step 1
hidden_act "silu"
hidden_size 2048
initializer_range 0.02
intermediate_size 18944
layer_types null
max_position_embeddings 32768
mlp_only_layers []
moe_intermediate_size 768
norm_topk_prob true
num_attention_heads 28
num_experts 128
num_experts_per_tok 8
num_hidden_layers 28
num_key_value_heads 4
!output_router_logits
pad_token_id null
rms_norm_eps 1e-06
rope_parameters {"rope_theta":1000000.0,"rope_type":"default"}
!router_aux_loss_coef
sliding_window null
vocab_size 3584
)"},
{"qwen3_omni_moe_thinker", R"(attention_chunk_size null
audio_start_token_id 151647
audio_token_id 151646
image_token_id 151655
initializer_range 0.02
layer_types null
position_id_per_seconds 25
sliding_window null
tie_word_embeddings false
user_token_id 872
video_token_id 151656
)"},
{"qwen3_omni_moe_vision_encoder", R"(=num_attention_heads num_heads
=num_hidden_layers depth
attention_chunk_size null
deepstack_visual_indexes [8,16,24]
depth 27
hidden_act "gelu_pytorch_tanh"
hidden_size 1152
in_channels 3
initializer_range 0.02
intermediate_size 4304
layer_types null
num_heads 16
num_position_embeddings 2304
out_hidden_size 3584
patch_size 16
rope_parameters {"rope_theta":10000.0,"rope_type":"axial"}
sliding_window null
spatial_merge_size 2
temporal_patch_size 2
)"},
{"qwen3_vl", R"(attention_chunk_size null
image_token_id 151655
layer_types null
sliding_window null
tie_word_embeddings false
video_token_id 151656
!vision_end_token_id
!vision_start_token_id
)"},
{"qwen3_vl_moe", R"(attention_chunk_size null
image_token_id 151655
layer_types null
sliding_window null
tie_word_embeddings false
video_token_id 151656
!vision_end_token_id
!vision_start_token_id
)"},
{"qwen3_vl_moe_text", R"(=num_experts num_local_experts
attention_bias false
attention_chunk_size null
attention_dropout 0.0
decoder_sparse_step 1
head_dim 128
hidden_act "silu"
hidden_size 2048
initializer_range 0.02
intermediate_size 5632
layer_types null
max_position_embeddings 128000
mlp_only_layers []
moe_intermediate_size 1408
num_attention_heads 16
num_experts_per_tok 4
num_hidden_layers 24
num_key_value_heads 16
num_local_experts 60
!output_router_logits
pad_token_id null
rms_norm_eps 1e-06
rope_parameters {"rope_theta":500000.0,"rope_type":"default"}
!router_aux_loss_coef
sliding_window null
tie_word_embeddings true
vocab_size 151936
)"},
{"qwen3_vl_moe_vision", R"(=num_attention_heads num_heads
=num_hidden_layers depth
attention_chunk_size null
deepstack_visual_indexes [8,16,24]
depth 27
hidden_act "gelu_pytorch_tanh"
hidden_size 1152
in_channels 3
initializer_range 0.02
intermediate_size 4304
layer_types null
num_heads 16
num_position_embeddings 2304
out_hidden_size 3584
patch_size 16
rope_parameters {"rope_theta":10000.0,"rope_type":"axial"}
sliding_window null
spatial_merge_size 2
temporal_patch_size 2
)"},
{"qwen3_vl_text", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
head_dim 128
hidden_act "silu"
hidden_size 4096
!initializer_range
intermediate_size 22016
layer_types null
max_position_embeddings 128000
num_attention_heads 32
num_hidden_layers 32
num_key_value_heads 32
pad_token_id null
rms_norm_eps 1e-06
rope_parameters {"rope_theta":500000.0,"rope_type":"default"}
sliding_window null
vocab_size 151936
)"},
{"qwen3_vl_vision", R"(=num_attention_heads num_heads
=num_hidden_layers depth
attention_chunk_size null
deepstack_visual_indexes [8,16,24]
depth 27
hidden_act "gelu_pytorch_tanh"
hidden_size 1152
in_channels 3
!initializer_range
intermediate_size 4304
layer_types null
num_heads 16
num_position_embeddings 2304
out_hidden_size 3584
patch_size 16
rope_parameters {"rope_theta":10000.0,"rope_type":"axial"}
sliding_window null
spatial_merge_size 2
temporal_patch_size 2
)"},
{"qwen4_exp", R"(attention_chunk_size null
full_attention_interval null
image_token_id 248056
layer_types null
sliding_window null
tie_word_embeddings false
video_token_id 248057
!vision_end_token_id
!vision_start_token_id
)"},
{"qwen4_exp_text", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
full_attention_interval null
hc_count 4
hc_lowrank 320
head_dim 256
heads_per_ngram 8
hidden_act "silu"
hidden_size 2048
indexer_budget null
indexer_compress_ratio null
indexer_head_dim null
indexer_kv_heads null
indexer_n_heads null
initializer_range 0.02
layer_types ["linear_attention","linear_attention","linear_attention","indexed_attention","linear_attention","linear_attention","linear_attention","indexed_attention","linear_attention","linear_attention","linear_attention","indexed_attention","linear_attention","linear_attention","linear_attention","indexed_attention","linear_attention","linear_attention","linear_attention","indexed_attention","linear_attention","linear_attention","linear_attention","indexed_attention","linear_attention","linear_attention","linear_attention","indexed_attention","linear_attention","linear_attention","linear_attention","indexed_attention","linear_attention","linear_attention","linear_attention","indexed_attention","linear_attention","linear_attention","linear_attention","indexed_attention"]
linear_conv_kernel_dim 4
linear_key_head_dim 128
linear_num_key_heads 16
linear_num_value_heads 32
linear_value_head_dim 128
make_ngram_vocab_size_divisible_by 128
max_position_embeddings 32768
moe_intermediate_size 512
ngram_size 3
ngram_vocab_size_base 20000000
norm_topk_prob true
num_attention_heads 16
num_experts 512
num_experts_per_tok 10
num_hidden_layers 40
num_key_value_heads 2
number_of_conv_states 1
output_gate_type null
output_router_logits false
pad_token_id null
ple_conv_kernel_size 4
ple_embed_dim 2048
ple_layer_ids []
rms_norm_eps 1e-06
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
router_aux_loss_coef 0.001
seed 1234
shared_expert_intermediate_size 512
sliding_window null
!split_ngram_parts
tie_word_embeddings false
vocab_size 248320
)"},
{"qwen4_exp_vision", R"(=num_attention_heads num_heads
=num_hidden_layers depth
attention_chunk_size null
depth 27
full_attention_interval null
hidden_act "gelu_pytorch_tanh"
hidden_size 1152
in_channels 3
initializer_range 0.02
intermediate_size 4304
layer_types null
num_heads 16
num_position_embeddings 2304
out_hidden_size 3584
patch_size 16
rope_parameters {"rope_theta":10000.0,"rope_type":"axial"}
sliding_window null
spatial_merge_size 2
temporal_patch_size 2
)"},
{"recurrent_gemma", R"(=layer_types layers_block_type
=sliding_window attention_window_size
attention_bias false
attention_chunk_size null
attention_dropout 0.0
attention_window_size 2048
block_types ["recurrent","recurrent","attention"]
conv1d_width 4
final_w_init_variance_scale 0.07692307692307693
head_dim 256
hidden_activation "gelu_pytorch_tanh"
hidden_size 2560
!ignore_keys_at_rope_validation
intermediate_size 7680
layer_types null
logits_soft_cap 30.0
lru_width 2560
num_attention_heads 10
num_hidden_layers 26
num_key_value_heads 10
pad_token_id 0
rms_norm_eps 1e-06
rope_parameters {"rope_theta":10000.0,"partial_rotary_factor":0.5,"rope_type":"default"}
sliding_window null
tie_word_embeddings true
vocab_size 256000
w_init_variance_scale 0.01
)"},
{"reformer", R"(attention_chunk_size null
attention_head_size 64
attn_layers ["local","lsh","local","lsh","local","lsh"]
axial_norm_std 1.0
axial_pos_embds true
axial_pos_embds_dim [64,192]
axial_pos_shape [64,64]
chunk_size_lm_head 0
classifier_dropout null
feed_forward_size 512
hash_seed null
hidden_act "relu"
hidden_dropout_prob 0.05
hidden_size 256
!initializer_range
is_decoder false
layer_norm_eps 1e-12
layer_types null
local_attention_probs_dropout_prob 0.05
local_attn_chunk_length 64
local_num_chunks_after 0
local_num_chunks_before 1
lsh_attention_probs_dropout_prob 0.0
lsh_attn_chunk_length 64
lsh_num_chunks_after 0
lsh_num_chunks_before 1
max_position_embeddings 4096
num_attention_heads 12
num_buckets null
num_hashes 1
num_hidden_layers 6
pad_token_id 0
sliding_window null
tie_word_embeddings false
vocab_size 320
)"},
{"regnet", R"(attention_chunk_size null
depths [2,6,12,2]
downsample_in_first_stage true
embedding_size 32
groups_width 64
hidden_act "relu"
hidden_sizes [128,192,512,1088]
layer_type "y"
layer_types null
num_channels 3
sliding_window null
)"},
{"rembert", R"(add_cross_attention false
attention_chunk_size null
attention_probs_dropout_prob 0.0
classifier_dropout_prob 0.1
hidden_act "gelu"
hidden_dropout_prob 0.0
hidden_size 1152
!initializer_range
input_embedding_size 256
intermediate_size 4608
is_decoder false
layer_norm_eps 1e-12
layer_types null
max_position_embeddings 512
num_attention_heads 18
num_hidden_layers 32
output_embedding_size 1664
pad_token_id 0
sliding_window null
tie_word_embeddings false
type_vocab_size 2
vocab_size 250300
)"},
{"resnet", R"(attention_chunk_size null
depths [3,4,6,3]
downsample_in_bottleneck false
downsample_in_first_stage false
embedding_size 64
hidden_act "relu"
hidden_sizes [256,512,1024,2048]
layer_type "bottleneck"
layer_types null
num_channels 3
out_features ["stage4"]
out_indices [4]
sliding_window null
!stage_names
)"},
{"rf_detr_dinov2", R"(apply_layernorm true
attention_chunk_size null
attention_probs_dropout_prob 0.0
drop_path_rate 0.0
hidden_act "gelu"
hidden_dropout_prob 0.0
hidden_size 768
image_size 224
initializer_range 0.02
layer_norm_eps 1e-06
layer_types null
layerscale_value 1.0
mlp_ratio 4
num_attention_heads 12
num_channels 3
num_hidden_layers 12
num_windows 4
out_features ["stage12"]
out_indices [12]
patch_size 14
qkv_bias true
reshape_hidden_states true
sliding_window null
!stage_names
use_mask_token true
use_swiglu_ffn false
window_block_indexes [0,1,2,3,4,5,6,7,8,9,10,11]
)"},
{"roberta", R"(add_cross_attention false
attention_chunk_size null
attention_probs_dropout_prob 0.1
classifier_dropout null
hidden_act "gelu"
hidden_dropout_prob 0.1
hidden_size 768
!initializer_range
intermediate_size 3072
is_decoder false
layer_norm_eps 1e-12
layer_types null
max_position_embeddings 512
num_attention_heads 12
num_hidden_layers 12
pad_token_id 1
sliding_window null
tie_word_embeddings true
type_vocab_size 2
vocab_size 50265
)"},
{"roberta-prelayernorm", R"(add_cross_attention false
attention_chunk_size null
attention_probs_dropout_prob 0.1
classifier_dropout null
hidden_act "gelu"
hidden_dropout_prob 0.1
hidden_size 768
!initializer_range
intermediate_size 3072
is_decoder false
layer_norm_eps 1e-12
layer_types null
max_position_embeddings 512
num_attention_heads 12
num_hidden_layers 12
pad_token_id 1
sliding_window null
tie_word_embeddings true
type_vocab_size 2
vocab_size 50265
)"},
{"roc_bert", R"(add_cross_attention false
attention_chunk_size null
attention_probs_dropout_prob 0.1
classifier_dropout null
concat_input true
enable_pronunciation true
enable_shape true
hidden_act "gelu"
hidden_dropout_prob 0.1
hidden_size 768
!initializer_range
intermediate_size 3072
is_decoder false
layer_norm_eps 1e-12
layer_types null
max_position_embeddings 512
num_attention_heads 12
num_hidden_layers 12
pad_token_id 0
pronunciation_embed_dim 768
pronunciation_vocab_size 910
shape_embed_dim 512
shape_vocab_size 24858
sliding_window null
tie_word_embeddings true
type_vocab_size 2
vocab_size 30522
)"},
{"roformer", R"(add_cross_attention false
attention_chunk_size null
attention_probs_dropout_prob 0.1
embedding_size 768
hidden_act "gelu"
hidden_dropout_prob 0.1
hidden_size 768
!initializer_range
intermediate_size 3072
is_decoder false
layer_norm_eps 1e-12
layer_types null
max_position_embeddings 1536
num_attention_heads 12
num_hidden_layers 12
pad_token_id 0
rotary_value false
sliding_window null
tie_word_embeddings true
type_vocab_size 2
vocab_size 50000
)"},
{"rt_detr_resnet", R"(attention_chunk_size null
depths [3,4,6,3]
downsample_in_bottleneck false
downsample_in_first_stage false
embedding_size 64
hidden_act "relu"
hidden_sizes [256,512,1024,2048]
layer_type "bottleneck"
layer_types null
num_channels 3
out_features ["stage4"]
out_indices [4]
sliding_window null
!stage_names
)"},
{"rwkv", R"(=max_position_embeddings context_length
attention_chunk_size null
attention_hidden_size 4096
context_length 1024
hidden_size 4096
intermediate_size 16384
layer_norm_epsilon 1e-05
layer_types null
num_hidden_layers 32
rescale_every 6
sliding_window null
tie_word_embeddings false
vocab_size 50277
)"},
{"sapiens2", R"(attention_chunk_size null
attention_dropout 0.0
drop_path_rate 0.0
!flip_pairs
hidden_act "silu"
hidden_size 1024
image_size 224
initializer_range 0.02
intermediate_size 4096
key_bias true
layer_types null
layerscale_value 1.0
mlp_bias true
normalize_backbone_outputs true
num_attention_heads 16
num_channels 3
num_first_full_attention_layers 8
num_hidden_layers 24
num_key_value_attention_heads 8
num_key_value_heads_per_layer [16,16,16,16,16,16,16,16,8,8,8,8,8,8,8,8,16,16,16,16,16,16,16,16]
num_last_full_attention_layers 8
num_register_tokens 8
out_features ["stage24"]
out_indices [24]
patch_size 16
pos_embed_jitter null
pos_embed_rescale 2.0
pos_embed_shift null
proj_bias true
query_bias true
reshape_hidden_states true
rms_norm_eps 1e-06
rope_theta 100.0
semantic_loss_ignore_index 255
sliding_window null
!stage_names
use_gated_mlp true
use_mask_token false
use_qk_norm true
value_bias true
)"},
{"sapiens2_head", R"(attention_chunk_size null
conv_kernel_size 1
conv_kernel_sizes null
conv_out_channels null
layer_types null
out_features null
out_indices null
scale_conv_kernel_size 1
scale_conv_kernel_sizes null
scale_conv_out_channels null
!scale_final_hidden_sizes
scale_final_input_size null
sliding_window null
upsample_kernel_size 4
upsample_kernel_sizes null
upsample_out_channels null
!use_pixel_shuffle
)"},
{"sarvam_mla", R"(=num_experts n_routed_experts
=num_local_experts n_routed_experts
=num_mtp_layers num_nextn_predict_layers
=num_shared_experts n_shared_experts
!attention_bias
attention_chunk_size null
attention_dropout 0.0
!first_k_dense_replace
head_dim 64
!hidden_act
hidden_size 4096
!initializer_range
!intermediate_size
!kv_lora_rank
layer_types null
max_position_embeddings 4096
!moe_intermediate_size
!n_group
!n_routed_experts
!n_shared_experts
!norm_topk_prob
num_attention_heads 64
!num_experts_per_tok
num_hidden_layers 32
num_key_value_heads 64
num_nextn_predict_layers 0
!output_router_logits
pad_token_id null
!pretraining_tp
q_head_dim null
!q_lora_rank
!qk_head_dim
qk_nope_head_dim 128
qk_rope_head_dim 64
rms_norm_eps 1e-06
!rope_interleave
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
rope_scaling null
!routed_scaling_factor
sliding_window null
tie_word_embeddings false
!topk_group
!v_head_dim
vocab_size 262144
)"},
{"sarvam_moe", R"(=num_experts n_routed_experts
=num_local_experts n_routed_experts
=num_mtp_layers num_nextn_predict_layers
=num_shared_experts n_shared_experts
=use_qkv_bias attention_bias
!attention_bias
attention_chunk_size null
attention_dropout 0.0
!first_k_dense_replace
head_dim 64
!hidden_act
hidden_size 4096
!ignore_keys_at_rope_validation
!initializer_range
!intermediate_size
layer_types null
max_position_embeddings 131072
!moe_intermediate_size
!n_group
!n_routed_experts
!n_shared_experts
!norm_topk_prob
num_attention_heads 64
!num_experts_per_tok
num_hidden_layers 19
!num_key_value_heads
num_nextn_predict_layers 0
!output_router_logits
pad_token_id 0
rms_norm_eps 1e-06
rope_parameters {"rope_theta":8000000.0,"partial_rotary_factor":1.0,"rope_type":"default"}
!routed_scaling_factor
sliding_window null
tie_word_embeddings false
!topk_group
!use_qk_norm
vocab_size 262144
)"},
{"seamless_m4t", R"(=num_attention_heads decoder_attention_heads
=num_hidden_layers decoder_layers
activation_dropout 0.0
activation_function "relu"
adaptor_dropout 0.1
adaptor_kernel_size 8
adaptor_stride 8
add_adapter true
attention_chunk_size null
attention_dropout 0.1
conv_depthwise_kernel_size 31
decoder_attention_heads 16
decoder_ffn_dim 8192
decoder_layerdrop 0.05
decoder_layers 24
decoder_start_token_id 3
dropout 0.1
encoder_attention_heads 16
encoder_ffn_dim 8192
encoder_layerdrop 0.05
encoder_layers 24
feature_projection_input_dim 160
hidden_size 1024
!initializer_range
lang_embed_dim 256
layer_norm_eps 1e-05
layer_types null
leaky_relu_slope 0.1
!max_new_tokens
max_position_embeddings 1024
max_source_positions 4096
num_adapter_layers 1
num_conv_pos_embedding_groups 16
num_conv_pos_embeddings 128
pad_token_id 0
position_embeddings_type "relative"
resblock_dilation_sizes [[1,3,5],[1,3,5],[1,3,5]]
resblock_kernel_sizes [3,7,11]
rotary_embedding_base 10000
!sampling_rate
scale_embedding true
sliding_window null
speech_encoder_attention_heads 16
speech_encoder_dropout 0.0
speech_encoder_hidden_act "swish"
speech_encoder_intermediate_size 4096
speech_encoder_layerdrop 0.1
speech_encoder_layers 24
spkr_embed_dim 256
!t2u_bos_token_id
!t2u_decoder_attention_heads
!t2u_decoder_ffn_dim
!t2u_decoder_layers
t2u_decoder_start_token_id 2
!t2u_encoder_attention_heads
!t2u_encoder_ffn_dim
!t2u_encoder_layers
t2u_eos_token_id 2
!t2u_max_new_tokens
!t2u_max_position_embeddings
t2u_pad_token_id 1
t2u_vocab_size 10082
tie_word_embeddings true
unit_embed_dim 1280
unit_hifi_gan_vocab_size 10000
upsample_initial_channel 512
upsample_kernel_sizes [11,8,8,4,4]
upsample_rates [5,4,4,2,2]
var_pred_dropout 0.5
variance_predictor_kernel_size 3
vocab_size 256102
vocoder_num_langs 36
vocoder_num_spkrs 200
vocoder_offset 4
)"},
{"seamless_m4t_v2", R"(=num_attention_heads decoder_attention_heads
=num_hidden_layers decoder_layers
activation_dropout 0.0
activation_function "relu"
adaptor_dropout 0.1
adaptor_kernel_size 8
adaptor_stride 8
add_adapter true
attention_chunk_size null
attention_dropout 0.1
char_vocab_size 10943
conv_depthwise_kernel_size 31
decoder_attention_heads 16
decoder_ffn_dim 8192
decoder_layerdrop 0.05
decoder_layers 24
decoder_start_token_id 3
dropout 0.1
encoder_attention_heads 16
encoder_ffn_dim 8192
encoder_layerdrop 0.05
encoder_layers 24
feature_projection_input_dim 160
hidden_size 1024
!initializer_range
lang_embed_dim 256
layer_norm_eps 1e-05
layer_types null
leaky_relu_slope 0.1
left_max_position_embeddings 64
!max_new_tokens
max_position_embeddings 4096
num_adapter_layers 1
pad_token_id 0
position_embeddings_type "relative_key"
resblock_dilation_sizes [[1,3,5],[1,3,5],[1,3,5]]
resblock_kernel_sizes [3,7,11]
right_max_position_embeddings 8
!sampling_rate
scale_embedding true
sliding_window null
speech_encoder_attention_heads 16
speech_encoder_chunk_size 20000
speech_encoder_dropout 0.0
speech_encoder_hidden_act "swish"
speech_encoder_intermediate_size 4096
speech_encoder_layerdrop 0.1
speech_encoder_layers 24
speech_encoder_left_chunk_num 128
spkr_embed_dim 256
!t2u_bos_token_id
!t2u_decoder_attention_heads
!t2u_decoder_ffn_dim
!t2u_decoder_layers
!t2u_encoder_attention_heads
!t2u_encoder_ffn_dim
!t2u_encoder_layers
t2u_eos_token_id 2
!t2u_max_position_embeddings
t2u_pad_token_id 1
!t2u_variance_pred_dropout
!t2u_variance_predictor_embed_dim
!t2u_variance_predictor_hidden_dim
!t2u_variance_predictor_kernel_size
t2u_vocab_size 10082
tie_word_embeddings true
unit_embed_dim 1280
unit_hifi_gan_vocab_size 10000
upsample_initial_channel 512
upsample_kernel_sizes [11,8,8,4,4]
upsample_rates [5,4,4,2,2]
var_pred_dropout 0.5
variance_predictor_kernel_size 3
vocab_size 256102
vocoder_num_langs 36
vocoder_num_spkrs 200
vocoder_offset 4
)"},
{"seed_oss", R"(attention_bias true
attention_chunk_size null
attention_dropout 0.1
attention_out_bias false
head_dim 128
hidden_act "silu"
hidden_size 4096
!initializer_range
intermediate_size 27648
layer_types null
max_position_embeddings 524288
mlp_bias false
num_attention_heads 80
num_hidden_layers 64
num_key_value_heads 8
pad_token_id 1
!pretraining_tp
residual_dropout 0.1
rms_norm_eps 1e-06
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
sliding_window null
tie_word_embeddings false
vocab_size 155136
)"},
{"segformer", R"(=num_hidden_layers num_encoder_blocks
attention_chunk_size null
attention_probs_dropout_prob 0.0
classifier_dropout_prob 0.1
decoder_hidden_size 256
depths [2,2,2,2]
drop_path_rate 0.1
hidden_act "gelu"
hidden_dropout_prob 0.0
hidden_sizes [32,64,160,256]
!initializer_range
!layer_norm_eps
layer_types null
mlp_ratios [4,4,4,4]
num_attention_heads [1,2,5,8]
num_channels 3
num_encoder_blocks 4
patch_sizes [7,3,3,3]
reshape_last_stage true
semantic_loss_ignore_index 255
sliding_window null
sr_ratios [8,4,2,1]
strides [4,2,2,2]
)"},
{"shieldgemma2", R"(=boi_token_id boi_token_index
=eoi_token_id eoi_token_index
=image_token_id image_token_index
attention_chunk_size null
!boi_token_index
!eoi_token_index
!image_token_index
!initializer_range
layer_types null
!mm_tokens_per_image
sliding_window null
tie_word_embeddings true
)"},
{"siglip", R"(attention_chunk_size null
initializer_factor 1.0
layer_types null
sliding_window null
)"},
{"siglip2", R"(attention_chunk_size null
initializer_factor 1.0
layer_types null
sliding_window null
)"},
{"siglip2_text_model", R"(attention_chunk_size null
attention_dropout 0.0
hidden_act "gelu_pytorch_tanh"
hidden_size 768
intermediate_size 3072
layer_norm_eps 1e-06
layer_types null
max_position_embeddings 64
num_attention_heads 12
num_hidden_layers 12
pad_token_id 1
projection_size 768
sliding_window null
vocab_size 32000
)"},
{"siglip2_vision_model", R"(attention_chunk_size null
attention_dropout 0.0
hidden_act "gelu_pytorch_tanh"
hidden_size 768
intermediate_size 3072
layer_norm_eps 1e-06
layer_types null
num_attention_heads 12
num_channels 3
num_hidden_layers 12
num_patches 256
patch_size 16
sliding_window null
vision_use_head true
)"},
{"siglip_text_model", R"(attention_chunk_size null
attention_dropout 0.0
hidden_act "gelu_pytorch_tanh"
hidden_size 768
intermediate_size 3072
layer_norm_eps 1e-06
layer_types null
max_position_embeddings 64
num_attention_heads 12
num_hidden_layers 12
pad_token_id 1
projection_size 768
sliding_window null
vocab_size 32000
)"},
{"siglip_vision_model", R"(attention_chunk_size null
attention_dropout 0.0
hidden_act "gelu_pytorch_tanh"
hidden_size 768
image_size 224
intermediate_size 3072
layer_norm_eps 1e-06
layer_types null
num_attention_heads 12
num_channels 3
num_hidden_layers 12
patch_size 16
sliding_window null
vision_use_head true
)"},
{"smollm3", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
hidden_act "silu"
hidden_size 2048
!initializer_range
intermediate_size 11008
layer_types ["full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention"]
max_position_embeddings 32768
mlp_bias false
no_rope_layer_interval 4
no_rope_layers [1,1,1,0,1,1,1,0,1,1,1,0,1,1,1,0,1,1,1,0,1,1,1,0,1,1,1,0,1,1,1,0,1,1,1,0]
num_attention_heads 16
num_hidden_layers 36
num_key_value_heads 4
pad_token_id 128004
rms_norm_eps 1e-06
rope_parameters {"rope_theta":2000000.0,"rope_type":"default"}
sliding_window null
tie_word_embeddings true
use_sliding_window false
vocab_size 128256
)"},
{"smolvlm", R"(attention_chunk_size null
image_token_id 128257
layer_types null
pad_token_id null
scale_factor 2
sliding_window null
tie_word_embeddings false
)"},
{"smolvlm_vision", R"(attention_chunk_size null
attention_dropout 0.0
hidden_act "gelu_pytorch_tanh"
hidden_size 1152
image_size 224
!initializer_range
intermediate_size 3072
layer_norm_eps 1e-06
layer_types null
num_attention_heads 16
num_channels 3
num_hidden_layers 12
pad_token_id null
patch_size 32
sliding_window null
)"},
{"solar_open", R"(=num_local_experts n_routed_experts
attention_bias false
attention_chunk_size null
attention_dropout 0.0
head_dim 128
hidden_act "silu"
hidden_size 4096
initializer_range 0.02
layer_types null
max_position_embeddings 131072
moe_intermediate_size 1280
n_group 1
n_routed_experts 128
n_shared_experts 1
norm_topk_prob true
num_attention_heads 64
num_experts_per_tok 8
num_hidden_layers 48
num_key_value_heads 8
!output_router_logits
pad_token_id null
rms_norm_eps 1e-05
rope_parameters {"rope_theta":1000000.0,"rope_type":"default"}
routed_scaling_factor 1.0
sliding_window null
tie_word_embeddings false
topk_group 1
vocab_size 196608
)"},
{"squeezebert", R"(attention_chunk_size null
attention_probs_dropout_prob 0.1
embedding_size 768
hidden_act "gelu"
hidden_dropout_prob 0.1
hidden_size 768
!initializer_range
intermediate_groups 4
intermediate_size 3072
k_groups 4
layer_norm_eps 1e-12
layer_types null
max_position_embeddings 512
num_attention_heads 12
num_hidden_layers 12
output_groups 4
pad_token_id 0
post_attention_groups 1
q_groups 4
sliding_window null
tie_word_embeddings true
type_vocab_size 2
v_groups 4
vocab_size 30522
)"},
{"stablelm", R"(attention_chunk_size null
attention_dropout 0.0
hidden_act "silu"
hidden_dropout 0.0
hidden_size 2560
!ignore_keys_at_rope_validation
!initializer_range
intermediate_size 6912
layer_norm_eps 1e-05
layer_types null
max_position_embeddings 4096
num_attention_heads 32
num_hidden_layers 32
num_key_value_heads 32
pad_token_id null
qk_layernorm false
rope_parameters {"rope_theta":10000.0,"partial_rotary_factor":0.25,"rope_type":"default"}
sliding_window null
tie_word_embeddings false
use_parallel_residual false
use_qkv_bias false
vocab_size 50304
)"},
{"starcoder2", R"(attention_chunk_size null
attention_dropout 0.0
embedding_dropout 0.0
hidden_act "gelu_pytorch_tanh"
hidden_size 3072
!initializer_range
intermediate_size 12288
layer_types null
max_position_embeddings 4096
norm_epsilon 1e-05
num_attention_heads 24
num_hidden_layers 30
num_key_value_heads 2
pad_token_id null
residual_dropout 0.0
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
sliding_window null
tie_word_embeddings true
use_bias true
vocab_size 49152
)"},
{"step3p5", R"(=moe_num_experts n_routed_experts
=moe_top_k num_experts_per_tok
=num_attention_groups num_key_value_heads
=num_local_experts n_routed_experts
=num_mtp_layers num_nextn_predict_layers
=share_expert_dims share_expert_dim
attention_bias false
attention_chunk_size null
attention_dropout 0.0
attention_other_setting null
head_dim 128
heads null
hidden_act "silu"
hidden_size 4096
initializer_range 0.02
intermediate_size 11264
layer_types ["full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention","full_attention"]
layers null
ls_init_value null
max_position_embeddings 128000
mlp_bias false
mlp_layer_types ["dense","dense","dense","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse"]
moe_intermediate_size 1280
moe_layer_freq null
moe_layers_enum null
moe_router_scaling_factor 1.0
!mtp_layer_types
!mtp_mlp_layer_types
n_routed_experts 288
num_attention_heads 64
num_experts_per_tok 8
num_hidden_layers 45
num_key_value_heads 8
num_nextn_predict_layers 0
num_sliding_attention_heads 64
!output_router_logits
pad_token_id 1
partial_rotary_factors null
per_layer_config {}
query_pre_attn_scalar 128
rms_norm_eps 1e-05
rope_parameters {"full_attention":{"rope_type":"default","rope_theta":10000.0}}
rope_scaling null
rope_theta null
share_expert_dim 1280
sliding_window null
sparse_attention_config null
swiglu_limits null
swiglu_limits_shared null
tie_word_embeddings false
vocab_size 128815
width null
)"},
{"step3p5_vision", R"(attention_chunk_size null
attention_dropout 0.0
attention_other_setting null
heads null
hidden_act "quick_gelu"
hidden_size 1536
image_size 728
intermediate_size 8960
layer_norm_eps 1e-05
layer_scale_init_value 0.1
layer_types null
layers null
ls_init_value null
max_position_embeddings 2704
mlp_ratio 5.833333333333333
moe_layer_freq null
moe_layers_enum null
num_attention_heads 16
num_channels 3
num_hidden_layers 47
num_nextn_predict_layers null
partial_rotary_factors null
patch_size 14
rope_parameters {"rope_theta":10000.0,"rope_type":"axial"}
rope_scaling null
rope_theta null
sliding_window null
sparse_attention_config null
width null
)"},
{"step3p7", R"(attention_chunk_size null
attention_other_setting null
heads null
image_token_id 151679
layer_types null
layers null
ls_init_value null
moe_layer_freq null
moe_layers_enum null
num_nextn_predict_layers null
partial_rotary_factors null
projector_bias false
rope_scaling null
rope_theta null
sliding_window null
sparse_attention_config null
width null
)"},
{"swiftformer", R"(attention_chunk_size null
batch_norm_eps 1e-05
depths [3,3,6,4]
down_pad 1
down_patch_size 3
down_stride 2
downsamples [true,true,true,true]
drop_conv_encoder_rate 0.0
drop_mlp_rate 0.0
drop_path_rate 0.0
embed_dims [48,56,112,220]
hidden_act "gelu"
!image_size
layer_scale_init_value 1e-05
layer_types null
mlp_ratio 4
num_channels 3
sliding_window null
use_layer_scale true
)"},
{"swin", R"(=num_attention_heads num_heads
=num_hidden_layers num_layers
attention_chunk_size null
attention_probs_dropout_prob 0.0
depths [2,2,6,2]
drop_path_rate 0.1
embed_dim 96
encoder_stride 32
hidden_act "gelu"
hidden_dropout_prob 0.0
hidden_size 768
image_size 224
!initializer_range
layer_norm_eps 1e-05
layer_types null
mlp_ratio 4.0
num_channels 3
num_heads [3,6,12,24]
num_layers 4
out_features ["stage4"]
out_indices [4]
patch_size 4
qkv_bias true
sliding_window null
!stage_names
use_absolute_embeddings false
window_size 7
)"},
{"swinv2", R"(=num_attention_heads num_heads
=num_hidden_layers num_layers
attention_chunk_size null
attention_probs_dropout_prob 0.0
depths [2,2,6,2]
drop_path_rate 0.1
embed_dim 96
encoder_stride 32
hidden_act "gelu"
hidden_dropout_prob 0.0
hidden_size 768
image_size 224
!initializer_range
layer_norm_eps 1e-05
layer_types null
mlp_ratio 4.0
num_channels 3
num_heads [3,6,12,24]
num_layers 4
out_features ["stage4"]
out_indices [4]
patch_size 4
pretrained_window_sizes [0,0,0,0]
qkv_bias true
sliding_window null
!stage_names
use_absolute_embeddings false
window_size 7
)"},
{"switch_transformers", R"(=hidden_size d_model
=num_attention_heads num_heads
=num_hidden_layers num_layers
!add_cross_attention
!add_router_probs
attention_chunk_size null
d_ff 2048
d_kv 64
d_model 768
decoder_sparse_step 4
dense_act_fn "relu"
dropout_rate 0.1
encoder_sparse_step 4
expert_capacity 64
initializer_factor 1.0
is_decoder false
layer_norm_epsilon 1e-06
layer_types null
num_decoder_layers 12
num_experts 8
num_heads 12
num_layers 12
num_sparse_decoder_layers 3
num_sparse_encoder_layers 3
pad_token_id 0
relative_attention_max_distance 128
relative_attention_num_buckets 32
router_aux_loss_coef 0.001
router_bias false
router_dtype "float32"
router_ignore_padding_tokens false
router_jitter_noise 0.01
router_z_loss_coef 0.001
sliding_window null
tie_word_embeddings true
vocab_size 32128
)"},
{"t5", R"(=head_dim d_kv
=hidden_size d_model
=num_attention_heads num_heads
=num_hidden_layers num_layers
attention_chunk_size null
classifier_dropout 0.0
d_ff 2048
d_kv 64
d_model 512
dense_act_fn "relu"
dropout_rate 0.1
feed_forward_proj "relu"
initializer_factor 1.0
is_decoder false
is_gated_act false
layer_norm_epsilon 1e-06
layer_types null
num_decoder_layers 6
num_heads 8
num_layers 6
pad_token_id 0
relative_attention_max_distance 128
relative_attention_num_buckets 32
scale_decoder_outputs true
sliding_window null
tie_word_embeddings true
vocab_size 32128
)"},
{"t5_gemma_module", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
attn_logit_softcapping 50.0
final_logit_softcapping 30.0
head_dim 256
hidden_activation "gelu_pytorch_tanh"
hidden_size 2304
initializer_range 0.02
intermediate_size 9216
is_decoder false
layer_types ["sliding_attention","full_attention","sliding_attention","full_attention","sliding_attention","full_attention","sliding_attention","full_attention","sliding_attention","full_attention","sliding_attention","full_attention","sliding_attention","full_attention","sliding_attention","full_attention","sliding_attention","full_attention","sliding_attention","full_attention","sliding_attention","full_attention","sliding_attention","full_attention","sliding_attention","full_attention"]
max_position_embeddings 8192
num_attention_heads 8
num_hidden_layers 26
num_key_value_heads 4
pad_token_id 0
query_pre_attn_scalar 256
rms_norm_eps 1e-06
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
sliding_window 4096
tie_word_embeddings true
vocab_size 256000
)"},
{"t5gemma", R"(attention_chunk_size null
attention_dropout 0.0
classifier_dropout_rate 0.0
dropout_rate 0.0
initializer_range 0.02
layer_types null
pad_token_id 0
sliding_window null
tie_word_embeddings true
vocab_size 256000
)"},
{"t5gemma2", R"(=eoi_token_id eoi_token_index
=image_token_id image_token_index
attention_chunk_size null
attention_dropout 0.0
classifier_dropout_rate 0.0
dropout_rate 0.0
eoi_token_index 256000
image_token_index 256001
initializer_range 0.02
layer_types null
pad_token_id 0
rope_local_base_freq null
rope_scaling null
rope_theta null
sliding_window null
sliding_window_pattern null
tie_word_embeddings true
vocab_size 262208
)"},
{"t5gemma2_decoder", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
attn_logit_softcapping null
final_logit_softcapping null
head_dim 256
hidden_activation "gelu_pytorch_tanh"
hidden_size 2304
initializer_range 0.02
intermediate_size 9216
layer_types ["sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention"]
max_position_embeddings 131072
num_attention_heads 8
num_hidden_layers 26
num_key_value_heads 4
pad_token_id 0
query_pre_attn_scalar 256
rms_norm_eps 1e-06
rope_local_base_freq null
rope_parameters {"sliding_attention":{"rope_type":"default","rope_theta":10000.0},"full_attention":{"rope_type":"default","rope_theta":1000000.0}}
rope_scaling null
rope_theta null
sliding_window 4096
sliding_window_pattern null
tie_word_embeddings true
vocab_size 262208
)"},
{"t5gemma2_encoder", R"(=boi_token_id boi_token_index
=eoi_token_id eoi_token_index
=image_token_id image_token_index
attention_chunk_size null
!boi_token_index
eoi_token_index 256000
image_token_index 262144
initializer_range 0.02
layer_types null
mm_tokens_per_image 256
rope_local_base_freq null
rope_scaling null
rope_theta null
sliding_window null
sliding_window_pattern null
tie_word_embeddings true
)"},
{"t5gemma2_text", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
attn_logit_softcapping null
final_logit_softcapping null
head_dim 256
hidden_activation "gelu_pytorch_tanh"
hidden_size 2304
initializer_range 0.02
intermediate_size 9216
layer_types ["sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention"]
max_position_embeddings 131072
num_attention_heads 8
num_hidden_layers 26
num_key_value_heads 4
pad_token_id 0
query_pre_attn_scalar 256
rms_norm_eps 1e-06
rope_local_base_freq null
rope_parameters {"sliding_attention":{"rope_type":"default","rope_theta":10000.0},"full_attention":{"rope_type":"default","rope_theta":1000000.0}}
rope_scaling null
rope_theta null
sliding_window 4096
sliding_window_pattern null
tie_word_embeddings true
vocab_size 262208
)"},
{"tapas", R"(add_cross_attention false
aggregation_labels null
aggregation_loss_weight 1.0
aggregation_temperature 1.0
allow_empty_column_selection false
answer_loss_cutoff null
answer_loss_importance 1.0
attention_chunk_size null
attention_probs_dropout_prob 0.1
average_approximation_function "ratio"
average_logits_per_cell false
cell_selection_preference null
disable_per_token_loss false
hidden_act "gelu"
hidden_dropout_prob 0.1
hidden_size 768
huber_loss_delta null
init_cell_selection_weights_to_zero false
initializer_range 0.02
intermediate_size 3072
is_decoder false
layer_norm_eps 1e-12
layer_types null
max_num_columns 32
max_num_rows 64
max_position_embeddings 1024
!no_aggregation_label_index
num_aggregation_labels 0
num_attention_heads 12
num_hidden_layers 12
pad_token_id 0
positive_label_weight 10.0
reset_position_index_per_cell true
select_one_column true
sliding_window null
temperature 1.0
tie_word_embeddings true
type_vocab_sizes [3,256,256,2,256,256,10]
use_answer_as_supervision null
use_gumbel_for_aggregation false
use_gumbel_for_cells false
use_normalized_answer_loss false
vocab_size 30522
)"},
{"textnet", R"(attention_chunk_size null
batch_norm_eps 1e-05
conv_layer_kernel_sizes [[[3,3],[3,3],[3,3]],[[3,3],[1,3],[3,3],[3,1]],[[3,3],[3,3],[3,1],[1,3]],[[3,3],[3,1],[1,3],[3,3]]]
conv_layer_strides [[1,2,1],[2,1,1,1],[2,1,1,1],[2,1,1,1]]
!depths
hidden_sizes [64,64,128,256,512]
!image_size
!initializer_range
layer_types null
out_features ["stage4"]
out_indices [4]
sliding_window null
!stage_names
stem_act_func "relu"
stem_kernel_size 3
stem_num_channels 3
stem_out_channels 64
stem_stride 2
)"},
{"timm_backbone", R"(attention_chunk_size null
backbone null
features_only true
freeze_batch_norm_2d false
layer_types null
num_channels 3
!out_features
out_indices [-1]
output_stride null
sliding_window null
)"},
{"timm_wrapper", R"(architecture "resnet50"
attention_chunk_size null
do_pooling true
!initializer_range
!label_names
layer_types null
model_args null
!num_classes
num_labels null
sliding_window null
)"},
{"tipsv2", R"(attention_chunk_size null
layer_types null
out_features null
out_indices null
sliding_window null
temperature_init_value 0.005065968260169029
)"},
{"tipsv2_text_model", R"(attention_chunk_size null
attention_dropout 0.0
hidden_act "relu"
hidden_size 768
initializer_range 0.02
intermediate_size 3072
layer_norm_eps 1e-05
layer_types null
max_position_embeddings 64
num_attention_heads 12
num_hidden_layers 12
out_features null
out_indices null
pad_token_id 0
pooling_epsilon 1e-08
scale_sqrt_depth true
sliding_window null
vocab_size 32000
)"},
{"tipsv2_vision_model", R"(apply_layernorm true
attention_chunk_size null
attention_probs_dropout_prob 0.0
drop_path_rate 0.0
hidden_act "gelu"
hidden_dropout_prob 0.0
hidden_size 768
image_size 448
initializer_range 0.02
layer_norm_eps 1e-06
layer_types null
layerscale_value 1.0
mlp_ratio 4
num_attention_heads 12
num_channels 3
num_hidden_layers 12
num_register_tokens 1
out_features ["stage12"]
out_indices [12]
patch_size 14
qkv_bias true
reshape_hidden_states true
sliding_window null
!stage_names
use_swiglu_ffn false
)"},
{"trocr", R"(=hidden_size d_model
=num_attention_heads decoder_attention_heads
=num_hidden_layers decoder_layers
activation_dropout 0.0
activation_function "gelu"
attention_chunk_size null
attention_dropout 0.0
cross_attention_hidden_size null
d_model 1024
decoder_attention_heads 16
decoder_ffn_dim 4096
decoder_layerdrop 0.0
decoder_layers 12
decoder_start_token_id 2
dropout 0.1
!init_std
is_decoder false
layer_types null
layernorm_embedding true
max_position_embeddings 512
pad_token_id 1
scale_embedding false
sliding_window null
tie_word_embeddings true
use_learned_position_embeddings true
vocab_size 50265
)"},
{"udop", R"(=hidden_size d_model
=num_attention_heads num_heads
=num_hidden_layers num_layers
add_cross_attention false
attention_chunk_size null
d_ff 4096
d_kv 64
d_model 1024
dense_act_fn "relu"
dropout_rate 0.1
feed_forward_proj "relu"
image_size 224
initializer_factor 1.0
is_decoder false
is_gated_act false
layer_norm_epsilon 1e-06
layer_types null
max_2d_position_embeddings 1024
num_channels 3
num_decoder_layers 24
num_heads 16
num_layers 24
pad_token_id 0
patch_size 16
relative_attention_max_distance 128
relative_attention_num_buckets 32
relative_bias_args [{"type":"1d"},{"type":"horizontal"},{"type":"vertical"}]
sliding_window null
tie_word_embeddings true
vocab_size 33201
)"},
{"ultrabert", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
attention_windows null
classifier_dropout 0.0
classifier_pooling "cls"
head_dim 128
hidden_act "silu"
hidden_size 4096
!initializer_range
intermediate_size 11008
layer_types ["sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention"]
max_position_embeddings 32768
mlp_bias false
num_attention_heads 32
num_hidden_layers 32
num_key_value_heads 32
pad_token_id 0
prediction_head_size 768
rms_norm_eps 1e-06
rope_parameters {"sliding_attention":{"rope_type":"default","rope_theta":10000.0},"full_attention":{"rope_type":"default","rope_theta":2560000.0}}
rope_theta null
sliding_window 128
tie_word_embeddings false
vocab_size 32000
)"},
{"ultravbert", R"(attention_chunk_size null
classifier_dropout 0.0
classifier_pooling "cls"
image_token_id 49191
initializer_cutoff_factor 2.0
initializer_range 0.02
layer_types null
pixel_shuffle_factor 4
sliding_window null
tie_word_embeddings false
)"},
{"umt5", R"(=head_dim d_kv
=hidden_size d_model
=num_attention_heads num_heads
=num_hidden_layers num_layers
attention_chunk_size null
classifier_dropout 0.0
d_ff 1024
d_kv 64
d_model 512
decoder_start_token_id 0
dense_act_fn "gelu_new"
dropout_rate 0.1
feed_forward_proj "gated-gelu"
initializer_factor 1.0
is_decoder false
is_gated_act true
layer_norm_epsilon 1e-06
layer_types null
num_decoder_layers 8
num_heads 6
num_layers 8
pad_token_id 0
relative_attention_max_distance 128
relative_attention_num_buckets 32
scale_decoder_outputs true
sliding_window null
tie_word_embeddings true
vocab_size 250112
)"},
{"unlimited_ocr", R"(attention_chunk_size null
first_k_dense_replace null
image_token_id 128815
language_config null
layer_types null
sliding_window null
tie_word_embeddings false
)"},
{"unlimited_ocr_sam_vision_model", R"(attention_chunk_size null
attention_dropout 0.0
downsample_channels [512,1024]
first_k_dense_replace null
global_attn_indexes [2,5,8,11]
hidden_act "gelu"
hidden_size 768
image_size 1024
initializer_range 1e-10
language_config null
layer_norm_eps 1e-06
layer_types null
mlp_dim 3072
num_attention_heads 12
num_channels 3
num_hidden_layers 12
output_channels 256
patch_size 16
qkv_bias true
sliding_window null
use_abs_pos true
use_rel_pos true
window_size 14
)"},
{"unlimited_ocr_text", R"(=num_experts n_routed_experts
attention_bias false
attention_chunk_size null
attention_dropout 0.0
first_k_dense_replace null
head_dim 128
hidden_act "silu"
hidden_size 1280
initializer_range 0.02
intermediate_size 6848
language_config null
layer_types ["reference_sliding_attention","reference_sliding_attention","reference_sliding_attention","reference_sliding_attention","reference_sliding_attention","reference_sliding_attention","reference_sliding_attention","reference_sliding_attention","reference_sliding_attention","reference_sliding_attention","reference_sliding_attention","reference_sliding_attention"]
max_position_embeddings 32768
mlp_bias false
mlp_layer_types ["dense","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse","sparse"]
moe_intermediate_size 896
n_group 1
n_routed_experts 64
n_shared_experts 2
num_attention_heads 10
num_experts_per_tok 6
num_hidden_layers 12
num_key_value_heads 10
!output_router_logits
pad_token_id null
!pretraining_tp
rms_norm_eps 1e-06
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
routed_scaling_factor 1.0
sliding_window 128
tie_word_embeddings false
topk_group 1
topk_method "greedy"
vocab_size 129280
)"},
{"unlimited_ocr_vision", R"(attention_chunk_size null
first_k_dense_replace null
language_config null
layer_types null
sliding_window null
)"},
{"unlimited_ocr_vision_encoder", R"(attention_chunk_size null
attention_dropout 0.0
first_k_dense_replace null
hidden_act "quick_gelu"
hidden_size 1024
image_size 224
initializer_factor 1.0
initializer_range 0.02
intermediate_size 4096
language_config null
layer_norm_eps 1e-05
layer_types null
num_attention_heads 16
num_channels 3
num_hidden_layers 24
patch_size 14
sliding_window null
)"},
{"uvdoc_backbone", R"(attention_chunk_size null
!depths
kernel_size 5
layer_types null
out_features ["stage6"]
out_indices [6]
resnet_configs [[[32,32,1,false],[32,32,3,false],[32,32,3,false]],[[32,64,1,true],[64,64,3,false],[64,64,3,false],[64,64,3,false]],[[64,128,1,true],[128,128,3,false],[128,128,3,false],[128,128,3,false],[128,128,3,false],[128,128,3,false]]]
resnet_head [[3,32],[32,32]]
sliding_window null
stage_configs [[[128,1]],[[128,2]],[[128,5]],[[128,8],[128,3],[128,2]],[[128,12],[128,7],[128,4]],[[128,18],[128,12],[128,6]]]
!stage_names
)"},
{"vaultgemma", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
attn_logit_softcapping 50.0
final_logit_softcapping 30.0
head_dim 256
hidden_activation "gelu_pytorch_tanh"
hidden_size 2304
!initializer_range
intermediate_size 9216
layer_types ["sliding_attention","full_attention","sliding_attention","full_attention","sliding_attention","full_attention","sliding_attention","full_attention","sliding_attention","full_attention","sliding_attention","full_attention","sliding_attention","full_attention","sliding_attention","full_attention","sliding_attention","full_attention","sliding_attention","full_attention","sliding_attention","full_attention","sliding_attention","full_attention","sliding_attention","full_attention"]
max_position_embeddings 8192
num_attention_heads 8
num_hidden_layers 26
num_key_value_heads 4
pad_token_id 0
query_pre_attn_scalar 256
rms_norm_eps 1e-06
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
sliding_window 4096
tie_word_embeddings true
vocab_size 256000
)"},
{"vibevoice_asr", R"(acoustic_tokenizer_chunk_size 1440000
attention_chunk_size null
!audio_bos_token_id
!audio_eos_token_id
audio_token_id 151648
layer_types null
sliding_window null
)"},
{"video_llama_3", R"(attention_chunk_size null
image_token_id 151655
layer_types null
sliding_window null
tie_word_embeddings false
video_token_id 151656
)"},
{"video_llama_3_vision", R"(attention_chunk_size null
attention_dropout 0.0
hidden_act "gelu_pytorch_tanh"
hidden_size 768
!initializer_range
intermediate_size 3072
layer_norm_eps 1e-06
layer_types null
num_attention_heads 12
num_channels 3
num_hidden_layers 12
patch_size 16
rope_parameters {"rope_theta":10000.0,"rope_type":"axial"}
sliding_window null
)"},
{"video_llava", R"(=image_token_id image_token_index
=video_token_id video_token_index
attention_chunk_size null
!image_seq_length
image_token_index 32000
layer_types null
multimodal_projector_bias true
projector_hidden_act "gelu"
sliding_window null
tie_word_embeddings false
!video_seq_length
video_token_index 32001
vision_feature_layer -2
!vision_feature_select_strategy
)"},
{"videoprism", R"(attention_chunk_size null
layer_types null
sliding_window null
)"},
{"videoprism_text_model", R"(apply_l2norm true
attention_chunk_size null
attention_probs_dropout_prob 0.0
attn_logit_softcapping 50.0
hidden_act "relu"
hidden_dropout_prob 0.0
hidden_size 768
!initializer_range
intermediate_size 3072
layer_norm_eps 1e-06
layer_types null
max_position_embeddings 64
num_attention_heads 12
num_hidden_layers 12
pad_token_id 0
qkv_bias true
sliding_window null
vocab_size 32000
)"},
{"videoprism_vision_model", R"(apply_l2norm true
attention_chunk_size null
attention_probs_dropout_prob 0.0
attn_logit_softcapping 50.0
hidden_act "gelu_python"
hidden_dropout_prob 0.0
hidden_size 768
image_size 288
!initializer_range
intermediate_size 3072
layer_norm_eps 1e-06
layer_types null
num_attention_heads 12
num_auxiliary_layers 2
num_channels 3
num_frames 16
num_spatial_layers 12
num_temporal_layers 4
qkv_bias true
sliding_window null
tubelet_size [1,18,18]
)"},
{"vipllava", R"(=image_token_id image_token_index
=vision_feature_layers vision_feature_layer
attention_chunk_size null
!image_seq_length
image_token_index 32000
layer_types null
projector_hidden_act "gelu"
projector_layernorm_eps 1e-05
sliding_window null
tie_word_embeddings false
vision_feature_layer [-2,-5,-8,-11,6]
)"},
{"vision-encoder-decoder", R"(attention_chunk_size null
layer_types null
sliding_window null
)"},
{"vit", R"(attention_chunk_size null
attention_probs_dropout_prob 0.0
encoder_stride 16
hidden_act "gelu"
hidden_dropout_prob 0.0
hidden_size 768
image_size 224
initializer_range 0.02
intermediate_size 3072
layer_norm_eps 1e-12
layer_types null
num_attention_heads 12
num_channels 3
num_hidden_layers 12
patch_size 16
pooler_act "tanh"
pooler_output_size 768
qkv_bias true
sliding_window null
)"},
{"vit_msn", R"(attention_chunk_size null
attention_probs_dropout_prob 0.0
hidden_act "gelu"
hidden_dropout_prob 0.0
hidden_size 768
image_size 224
!initializer_range
intermediate_size 3072
layer_norm_eps 1e-06
layer_types null
num_attention_heads 12
num_channels 3
num_hidden_layers 12
patch_size 16
qkv_bias true
sliding_window null
)"},
{"vitdet", R"(attention_chunk_size null
drop_path_rate 0.0
dropout_prob 0.0
hidden_act "gelu"
hidden_size 768
image_size 224
initializer_range 0.02
layer_norm_eps 1e-06
layer_types null
mlp_ratio 4
num_attention_heads 12
num_channels 3
num_hidden_layers 12
out_features ["stage12"]
out_indices [12]
patch_size 16
pretrain_image_size 224
qkv_bias true
residual_block_indices []
sliding_window null
!stage_names
use_absolute_position_embeddings true
use_relative_position_embeddings false
window_block_indices []
window_size 0
)"},
{"vitpose_backbone", R"(attention_chunk_size null
attention_probs_dropout_prob 0.0
hidden_act "gelu"
hidden_dropout_prob 0.0
hidden_size 768
image_size [256,192]
initializer_range 0.02
layer_norm_eps 1e-12
layer_types null
mlp_ratio 4
num_attention_heads 12
num_channels 3
num_experts 1
num_hidden_layers 12
out_features ["stage12"]
out_indices [12]
part_features 256
patch_size [16,16]
qkv_bias true
sliding_window null
!stage_names
)"},
{"voxtral", R"(attention_chunk_size null
audio_token_id null
hidden_size 3072
layer_types null
projector_hidden_act "gelu"
sliding_window null
)"},
{"voxtral_realtime", R"(attention_chunk_size null
audio_length_per_tok 8
default_num_delay_tokens 6
downsample_factor 4
hidden_size 3072
layer_types null
projector_hidden_act "gelu"
sliding_window null
tie_word_embeddings true
)"},
{"whisper", R"(=hidden_size d_model
=num_attention_heads encoder_attention_heads
=num_hidden_layers encoder_layers
=num_key_value_heads encoder_attention_heads
activation_dropout 0.0
activation_function "gelu"
apply_spec_augment false
attention_chunk_size null
attention_dropout 0.0
!begin_suppress_tokens
classifier_proj_size 256
d_model 384
decoder_attention_heads 6
decoder_ffn_dim 1536
decoder_layerdrop 0.0
decoder_layers 4
decoder_start_token_id 50257
dropout 0.0
encoder_attention_heads 6
encoder_ffn_dim 1536
encoder_layerdrop 0.0
encoder_layers 4
!init_std
layer_types null
mask_feature_length 10
mask_feature_min_masks 0
mask_feature_prob 0.0
mask_time_length 10
mask_time_min_masks 2
mask_time_prob 0.05
max_source_positions 1500
max_target_positions 448
!median_filter_width
num_mel_bins 80
pad_token_id 50256
scale_embedding false
sliding_window null
!suppress_tokens
tie_word_embeddings true
use_weighted_layer_sum false
vocab_size 51865
)"},
{"xglm", R"(=hidden_size d_model
=num_attention_heads attention_heads
=num_hidden_layers num_layers
activation_dropout 0.0
activation_function "gelu"
add_cross_attention false
attention_chunk_size null
attention_dropout 0.1
attention_heads 16
d_model 1024
!decoder_start_token_id
dropout 0.1
ffn_dim 4096
!init_std
layer_types null
layerdrop 0.0
max_position_embeddings 2048
num_layers 24
pad_token_id 1
scale_embedding true
sliding_window null
tie_word_embeddings true
vocab_size 256008
)"},
{"xlm", R"(=bos_index bos_token_id
=eos_index eos_token_id
=hidden_size emb_dim
=n_words vocab_size
=num_attention_heads n_heads
=num_hidden_layers n_layers
=pad_index pad_token_id
asm false
attention_chunk_size null
attention_dropout 0.1
causal false
dropout 0.1
emb_dim 2048
embed_init_std 0.02209708691207961
end_n_top 5
gelu_activation true
!init_std
is_encoder true
lang_id 0
layer_norm_eps 1e-12
layer_types null
!mask_index
mask_token_id 0
max_position_embeddings 512
n_heads 16
n_langs 1
n_layers 12
pad_token_id 2
sinusoidal_embeddings false
sliding_window null
start_n_top 5
summary_activation null
summary_first_dropout 0.1
summary_proj_to_labels true
summary_type "first"
summary_use_proj true
tie_word_embeddings true
!unk_index
use_lang_emb true
vocab_size 30145
)"},
{"xlm-roberta", R"(add_cross_attention false
attention_chunk_size null
attention_probs_dropout_prob 0.1
classifier_dropout null
hidden_act "gelu"
hidden_dropout_prob 0.1
hidden_size 768
!initializer_range
intermediate_size 3072
is_decoder false
layer_norm_eps 1e-12
layer_types null
max_position_embeddings 512
num_attention_heads 12
num_hidden_layers 12
pad_token_id 1
sliding_window null
tie_word_embeddings true
type_vocab_size 2
vocab_size 30522
)"},
{"xlm-roberta-xl", R"(add_cross_attention false
attention_chunk_size null
attention_probs_dropout_prob 0.1
classifier_dropout null
hidden_act "gelu"
hidden_dropout_prob 0.1
hidden_size 2560
!initializer_range
intermediate_size 10240
is_decoder false
layer_norm_eps 1e-05
layer_types null
max_position_embeddings 514
num_attention_heads 32
num_hidden_layers 36
pad_token_id 1
sliding_window null
tie_word_embeddings true
type_vocab_size 1
vocab_size 250880
)"},
{"xlnet", R"(=hidden_size d_model
=n_token vocab_size
=num_attention_heads n_head
=num_hidden_layers n_layer
attention_chunk_size null
attn_type "bi"
bi_data false
clamp_len -1
d_head 64
d_inner 4096
d_model 1024
dropout 0.1
end_n_top 5
ff_activation "gelu"
initializer_range 0.02
layer_norm_eps 1e-12
layer_types null
mem_len 512
n_head 16
n_layer 24
pad_token_id 5
reuse_len null
same_length false
sliding_window null
start_n_top 5
summary_activation "tanh"
summary_last_dropout 0.1
summary_type "last"
summary_use_proj true
tie_word_embeddings true
use_mems_eval true
use_mems_train false
vocab_size 32000
)"},
{"xlstm", R"(add_out_norm true
attention_chunk_size null
autocast_kernel_dtype "bfloat16"
chunk_size 64
chunkwise_kernel "chunkwise--native_autograd"
embedding_dim 4096
eps 1e-06
ffn_proj_factor 2.667
ffn_round_up_to_multiple_of 64
gate_soft_cap 15.0
hidden_size 4096
inference_state_dtype "float32"
layer_types null
max_inference_chunksize 16384
mode "inference"
norm_eps 1e-06
norm_reduction_force_float32 true
num_blocks 32
num_heads 8
num_hidden_layers 32
output_logit_soft_cap 30.0
pad_token_id 1
qk_dim_factor 0.5
return_last_states true
sequence_kernel "native_sequence__native"
sliding_window null
step_kernel "native"
tie_word_embeddings false
use_bias false
v_dim_factor 1.0
vocab_size 50304
weight_mode "single"
)"},
{"xmod", R"(adapter_layer_norm false
adapter_reduction_factor 2
adapter_reuse_layer_norm true
add_cross_attention false
attention_chunk_size null
attention_probs_dropout_prob 0.1
classifier_dropout null
default_language null
hidden_act "gelu"
hidden_dropout_prob 0.1
hidden_size 768
!initializer_range
intermediate_size 3072
is_decoder false
languages ["en_XX"]
layer_norm_eps 1e-12
layer_types null
ln_before_adapter true
max_position_embeddings 512
num_attention_heads 12
num_hidden_layers 12
pad_token_id 1
pre_norm false
sliding_window null
tie_word_embeddings true
type_vocab_size 2
vocab_size 30522
)"},
{"yoso", R"(add_cross_attention false
attention_chunk_size null
attention_probs_dropout_prob 0.1
conv_window null
hash_code_len 9
hidden_act "gelu"
hidden_dropout_prob 0.1
hidden_size 768
!initializer_range
intermediate_size 3072
layer_norm_eps 1e-12
layer_types null
lsh_backward true
max_position_embeddings 4096
num_attention_heads 12
num_hash 64
num_hidden_layers 12
pad_token_id 1
sliding_window null
tie_word_embeddings true
type_vocab_size 1
use_expectation true
use_fast_hash true
vocab_size 50265
)"},
{"youtu", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
embedding_initializer_range 0.03952847075210474
head_dim 64
hidden_act "silu"
hidden_size 2048
initializer_range 0.01976423537605237
intermediate_size 6144
kv_lora_rank 512
layer_types null
max_position_embeddings 131072
num_attention_heads 16
num_hidden_layers 32
num_key_value_heads 16
pad_token_id null
q_lora_rank 1536
!qk_head_dim
qk_nope_head_dim 128
qk_rope_head_dim 64
rms_norm_eps 1e-06
rope_interleave true
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
sliding_window null
tie_word_embeddings true
v_head_dim 128
vocab_size 128256
)"},
{"zamba", R"(=head_dim attention_head_dim
=layer_types layers_block_type
attention_chunk_size null
attention_dropout 0.0
attention_head_dim 464
attention_hidden_size 7424
attn_layer_offset 4
attn_layer_period 6
hidden_act "gelu"
hidden_mamba_act "silu"
hidden_size 3712
initializer_range 0.02
intermediate_size 14848
layer_types null
layers_block_type ["linear_attention","linear_attention","hybrid","linear_attention","linear_attention","linear_attention","linear_attention","hybrid","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","hybrid","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","hybrid","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","hybrid","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","hybrid","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","hybrid","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","hybrid","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","hybrid","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","hybrid","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","hybrid","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","hybrid","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","hybrid","linear_attention","linear_attention"]
mamba_conv_bias true
mamba_d_conv 4
mamba_d_state 16
mamba_dt_rank 232
mamba_expand 2
mamba_proj_bias false
max_position_embeddings 4096
n_mamba_heads 2
num_attention_heads 16
num_hidden_layers 76
num_key_value_heads 16
num_logits_to_keep 1
pad_token_id 0
rms_norm_eps 1e-05
sliding_window null
tie_word_embeddings true
time_step_floor 0.0001
time_step_max 0.1
time_step_min 0.001
use_associative_scan true
use_mamba_kernels true
vocab_size 32000
)"},
{"zamba2", R"(=head_dim attention_head_dim
=layer_types layers_block_type
adapter_rank 128
add_bias_linear false
attention_chunk_size null
attention_dropout 0.0
attention_head_dim 160
attention_hidden_size 5120
chunk_size 256
hidden_act "gelu"
hidden_size 2560
hybrid_layer_ids [6,12,18,24,30,36,42,47,51]
!initializer_range
intermediate_size 10240
!kv_channels
layer_types null
layers_block_type ["linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","hybrid","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","hybrid","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","hybrid","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","hybrid","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","hybrid","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","hybrid","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","hybrid","linear_attention","linear_attention","linear_attention","linear_attention","hybrid","linear_attention","linear_attention","linear_attention","hybrid","linear_attention","linear_attention"]
mamba_d_conv 4
mamba_d_state 64
mamba_expand 2
mamba_headdim 640
mamba_ngroups 1
max_position_embeddings 4096
n_mamba_heads 8
num_attention_heads 32
num_hidden_layers 54
num_key_value_heads 32
num_logits_to_keep 1
num_mem_blocks 1
!num_query_groups
pad_token_id 0
rms_norm_eps 1e-05
rope_parameters {"rope_theta":10000.0,"rope_type":"default"}
sliding_window null
tie_word_embeddings true
time_step_floor 0.0001
time_step_max 0.1
time_step_min 0.001
use_conv_bias true
use_long_context false
use_mamba_kernels true
!use_mem_eff_path
use_mem_rope false
use_shared_attention_adapter false
vocab_size 32000
)"},
{"zaya", R"(attention_bias false
attention_chunk_size null
attention_dropout 0.0
cca_time0 2
cca_time1 2
head_dim 128
hidden_act "silu"
hidden_size 2048
!ignore_keys_at_rope_validation
initializer_range 0.02
layer_types ["hybrid","hybrid","hybrid","hybrid","hybrid","hybrid","hybrid","hybrid","hybrid","hybrid","hybrid","hybrid","hybrid","hybrid","hybrid","hybrid","hybrid","hybrid","hybrid","hybrid","hybrid","hybrid","hybrid","hybrid","hybrid","hybrid","hybrid","hybrid","hybrid","hybrid","hybrid","hybrid","hybrid","hybrid","hybrid","hybrid","hybrid","hybrid","hybrid","hybrid"]
lm_head_bias false
max_position_embeddings 131072
moe_intermediate_size 2048
num_attention_heads 8
num_experts 16
num_experts_per_tok 1
num_hidden_layers 40
num_key_value_heads 2
output_router_logits false
pad_token_id 0
rms_norm_eps 1e-05
rope_parameters {"hybrid":{"rope_type":"default","rope_theta":5000000.0,"partial_rotary_factor":0.5},"hybrid_sliding":{"rope_type":"default","rope_theta":10000.0,"partial_rotary_factor":0.5}}
router_hidden_size 256
sliding_window null
tie_word_embeddings true
vocab_size 262272
)"},
};
const std::size_t kHfKeyTypes = std::size(kHfKeyRows);

}  // namespace redco
